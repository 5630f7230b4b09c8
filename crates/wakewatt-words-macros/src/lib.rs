//! How does a sentence of the sources become one in another language, with its arguments checked by the compiler?
//!
//! gettext's way, at compile time: the English template is the message's name, `languages/LANGUAGE/*.po` are the catalogues,
//! and each use becomes a `match` on the language in force with one `format!` for each. A translation that asks for an
//! argument which is not there does not compile; one that needs fewer (a plural's "s") leaves the rest out. A message that
//! no catalogue has is its English. `cargo xtask words` keeps the catalogues in step with the sources.

mod template;

use proc_macro::TokenStream;
use proc_macro2::{Span, TokenStream as Tokens};
use quote::{format_ident, quote};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Expr, Ident, LitStr, Token};

/// The catalogue: English, Chinese, in the order of the English.
const CHINESE: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/chinese.rs"));

fn chinese_of(english: &str) -> Option<&'static str> {
    CHINESE
        .binary_search_by(|(e, _)| (*e).cmp(english))
        .ok()
        .and_then(|at| CHINESE.get(at))
        .map(|(_, chinese)| *chinese)
}

/// One argument behind the template.
struct Argument {
    name: Option<Ident>,
    value: Expr,
}

impl Parse for Argument {
    fn parse(input: ParseStream<'_>) -> syn::Result<Argument> {
        let is_named = input.peek(Ident) && input.peek2(Token![=]) && !input.peek2(Token![==]);
        let name = match is_named {
            true => {
                let name = input.parse()?;
                input.parse::<Token![=]>()?;
                Some(name)
            }
            false => None,
        };
        Ok(Argument { name, value: input.parse()? })
    }
}

/// What stands in the brackets of `say!`.
struct Said {
    template: LitStr,
    arguments: Vec<Argument>,
}

impl Parse for Said {
    fn parse(input: ParseStream<'_>) -> syn::Result<Said> {
        let template = input.parse()?;
        if !input.is_empty() {
            input.parse::<Token![,]>()?;
        }
        let arguments = Punctuated::<Argument, Token![,]>::parse_terminated(input)?.into_iter().collect();
        Ok(Said { template, arguments })
    }
}

impl Said {
    /// `format!` of the template as it stands.
    fn english(&self) -> Tokens {
        let (template, arguments) = (
            &self.template,
            self.arguments.iter().map(|a| {
                let value = &a.value;
                a.name.as_ref().map_or_else(|| quote!(#value), |name| quote!(#name = #value))
            }),
        );
        quote!(::std::format!(#template #(, #arguments)*))
    }

    /// `format!` of the translation, with those arguments that it uses, each by its name.
    fn translated(&self, to: &str) -> syn::Result<Tokens> {
        let wrong = |why: String| syn::Error::new(self.template.span(), format!("languages/zh: {to:?}: {why}"));
        let english = template::parts(&self.template.value()).map_err(&wrong)?;
        let parts = template::parts(to).map_err(&wrong)?;
        let (text, used) =
            template::by_name(&parts, &template::specs(&english), self.arguments.len()).map_err(wrong)?;
        let arguments = self.arguments.iter().enumerate().filter_map(|(at, argument)| {
            let value = &argument.value;
            match &argument.name {
                Some(name) if used.contains(&name.to_string()) => Some(quote!(#name = #value)),
                Some(_) => None,
                None => {
                    let name = format_ident!("a{at}_");
                    used.contains(&name.to_string()).then(|| quote!(#name = #value))
                }
            }
        });
        let span = self.template.span().resolved_at(Span::call_site());
        let text = LitStr::new(&text, span);
        Ok(quote!(::std::format!(#text #(, #arguments)*)))
    }
}

/// A sentence with arguments, as `format!` takes them: a `String` in the language in force.
#[proc_macro]
pub fn say(input: TokenStream) -> TokenStream {
    let said = syn::parse_macro_input!(input as Said);
    let english = said.english();
    let Some(to) = chinese_of(&said.template.value()) else { return english.into() };
    match said.translated(to) {
        Ok(chinese) => quote!(match ::wakewatt_words::language() {
            ::wakewatt_words::Language::Chinese => #chinese,
            ::wakewatt_words::Language::English => #english,
        })
        .into(),
        Err(error) => error.to_compile_error().into(),
    }
}

/// Words without arguments: a `&'static str` in the language in force.
#[proc_macro]
pub fn word(input: TokenStream) -> TokenStream {
    let english = syn::parse_macro_input!(input as LitStr);
    match chinese_of(&english.value()) {
        Some(chinese) => quote!(match ::wakewatt_words::language() {
            ::wakewatt_words::Language::Chinese => #chinese,
            ::wakewatt_words::Language::English => #english,
        })
        .into(),
        None => quote!(#english).into(),
    }
}
