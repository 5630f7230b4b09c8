//! The tool in Chinese: what a person reads is, what a program reads is not, and which of both comes from where.

use crate::tool::{Said, fixtures, host, said, wakewatt};

/// In a locale of China.
fn there(args: &[&str]) -> Said {
    said(wakewatt(args).env("LANG", "zh_CN.UTF-8").env("TERM", "xterm"))
}

#[test]
fn documents_are_the_same_in_every_language() {
    let file = host("clx2s0").display().to_string();
    let other = host("sklep0").display().to_string();
    let from = ["--host", &file];
    let with = |args: &[&'static str]| -> Vec<String> { args.iter().chain(&from).map(|a| (*a).to_string()).collect() };
    let mut lines = vec![
        with(&["inspect", "--json"]),
        with(&["explain", "C6", "--json"]),
        with(&["explain", "PC6", "--json"]),
        with(&["explain", "rule.package-limit", "--json"]),
        with(&["explain", "freq.governor", "--json"]),
        with(&["tune", "plan", "--max-latency", "5us", "--json"]),
        with(&["tune", "plan", "k4-conservative", "--json"]),
        with(&["tune", "knobs", "--json"]),
        with(&["experiment", "idle", "--dry-run", "--json"]),
        with(&["doctor", "--no-report", "--json"]),
    ];
    lines.push(["compare", "--json", &file, &other].map(String::from).to_vec());
    let boot = fixtures().join("boot/grub-debian-12/before").display().to_string();
    lines.push(["tune", "plan", "--boot-arg", "idle=poll", "--sysroot", &boot, "--json"].map(String::from).to_vec());
    // Only the moment at which it was made may differ.
    let body = |said: &Said| {
        let mut document: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        document.as_object_mut().unwrap().retain(|key, _| key != "generated_at");
        (said.code, document)
    };
    for line in lines {
        let line: Vec<&str> = line.iter().map(String::as_str).collect();
        let (english, chinese) = (said(&mut wakewatt(&line)), there(&line));
        assert_eq!(body(&english), body(&chinese), "{line:?}");
    }
}

#[test]
fn a_plan_is_told_in_the_language_of_the_locale() {
    let file = host("clx2s0").display().to_string();
    let args = ["tune", "plan", "--max-latency", "5us", "--host", &file];
    let plan = there(&args);
    assert_eq!(plan.code, Some(0), "{}", plan.err);
    for word in ["计划 延迟预算 5us", "qos.global = 5us (所有 CPU 的延迟上限)", "代价", "风险", "撤销"]
    {
        assert!(plan.out.contains(word), "{word}: {}", plan.out);
    }
    for word in ["price", "risk", "latency limit"] {
        assert!(!plan.out.contains(word), "{word}: {}", plan.out);
    }
    let english = said(wakewatt(&args).args(["--lang", "en"]).env("LANG", "zh_CN.UTF-8"));
    assert_eq!(english.out, said(&mut wakewatt(&args)).out);
}

#[test]
fn a_word_is_explained_in_the_language_of_the_locale() {
    let of = |word: &str, name: &str| {
        let file = host(name).display().to_string();
        let said = there(&["explain", word, "--host", &file]);
        assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{word}: {}", said.out);
        said.out
    };
    for (word, name, has, has_not) in [
        ("c6", "emr9", "C6\n  核心保存寄存器", "The core"),
        ("c6", "emr9", "\n  C6 退出延迟（标称）：290us\n", "(claimed)"),
        ("C6", "emr9", "C6 可进入：", "can be entered"),
        ("G0", "rome0", "其 Cx 为 POLL, C1, C2", "its Cx"),
        ("C6P", "rome0", "不适用于本机：Intel 的用语", "a word of"),
        ("rule.package-limit", "clx2s0", "\n  回答：是：", "answer: yes"),
        ("freq.governor", "emr9", "（可取 ", "(takes "),
    ] {
        let out = of(word, name);
        assert!(out.contains(has) && !out.contains(has_not), "{word}, {has}: {out}");
    }
}

#[test]
fn help_and_errors_speak_it_and_scripts_get_their_codes() {
    let help = there(&["tune", "plan", "--help"]);
    assert!(help.code == Some(0) && help.out.starts_with("示例：\n"), "{}", help.out);
    assert!(help.out.contains("用法：") && help.out.contains("选项："), "{}", help.out);
    let wrong = there(&["doctor", "--quik"]);
    assert_eq!((wrong.code, wrong.out.as_str()), (Some(2), ""));
    assert!(wrong.err.starts_with("错误：没有参数 '--quik'"), "{}", wrong.err);
    // A bare console has no such characters.
    let console = said(wakewatt(&["tune", "--help"]).env("LANG", "zh_CN.UTF-8").env("TERM", "linux"));
    assert!(console.out.starts_with("Example:"), "{}", console.out);
    let asked = said(&mut wakewatt(&["--lang", "zh", "tune", "--help"]));
    assert_eq!(asked.out, there(&["tune", "--help"]).out);
}
