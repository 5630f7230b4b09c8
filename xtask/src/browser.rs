//! Opens a finished report in a real browser: does it draw at both widths and print, does it call anybody, does it fit?
//!
//! Chromium runs headless with its own throw-away profile, every host name mapped to nowhere, and a network log. The
//! report passes when the log holds no request but for files, the console is silent, the pictures and the PDF exist,
//! and nothing is wider than the window, no chart is empty and no text stands on another. The last are asked of a copy with a script added, because
//! the report itself has none and its security policy would forbid it.

use anyhow::{Context, Result, bail, ensure};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Widths to look at, in CSS pixels.
const WIDTHS: [u32; 2] = [1280, 390];
const PATIENCE: Duration = Duration::from_secs(90);

/// Is there a browser to ask?
pub(crate) fn is_installed() -> bool {
    Command::new("chromium")
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|s| s.success())
}

/// Checks one report; pictures `WIDTH-light.png`, `WIDTH-dark.png` and `print.pdf` are left in `out`.
pub(crate) fn check(html: &Path, out: &Path) -> Result<()> {
    let html = html.canonicalize().with_context(|| format!("no report at {}", html.display()))?;
    std::fs::create_dir_all(out).with_context(|| format!("cannot create {}", out.display()))?;
    let url = format!("file://{}", html.display());
    for width in WIDTHS {
        for (scheme, value) in [("light", 1), ("dark", 0)] {
            let picture = out.join(format!("{width}-{scheme}.png"));
            browse(
                &url,
                &[
                    format!("--screenshot={}", picture.display()),
                    format!("--window-size={width},{}", if width < 600 { 34_000 } else { 26_000 }),
                    format!("--blink-settings=preferredColorScheme={value}"),
                    "--hide-scrollbars".into(),
                ],
            )?;
            ensure_file(&picture)?;
        }
    }
    let pdf = out.join("print.pdf");
    browse(&url, &[format!("--print-to-pdf={}", pdf.display()), "--no-pdf-header-footer".into()])?;
    ensure_file(&pdf)?;
    let shown = WIDTHS.map(|width| fits(&html, width));
    let [wide, narrow] = shown;
    let (wide, narrow) = (wide?, narrow?);
    ensure!(wide == narrow, "{wide} charts on a wide page and {narrow} on a phone");
    Ok(())
}

/// Asks the page about itself: its width, and of every chart that shows whether it has a size, stays inside the window,
/// and whether two of its texts stand on each other (half a line high and a letter wide; boxes are higher than letters).
const PROBE: &str = r#"<script>
const shown=[...document.querySelectorAll('svg.chart')].filter(s=>s.getClientRects().length);
const bad=[];
for(const s of shown){
  const name=(s.getAttribute('aria-labelledby')||'?').split(' ')[0], b=s.getBoundingClientRect();
  if(b.width<100||b.height<40) bad.push(name+' is '+b.width+' by '+b.height);
  if(s.querySelectorAll('path,rect,line,circle').length<2) bad.push(name+' draws nothing');
  const t=[...s.querySelectorAll('text')].map(e=>[e.getBoundingClientRect(),e.textContent]);
  for(const [r,w] of t) if(r.left<-1||r.right>innerWidth+1) bad.push(name+' leaves the window: '+w);
  for(let i=0;i<t.length;i++) for(let k=0;k<i;k++){
    const [p,v]=t[i],[q,w]=t[k];
    const x=Math.min(p.right,q.right)-Math.max(p.left,q.left), y=Math.min(p.bottom,q.bottom)-Math.max(p.top,q.top);
    if(x>4&&y>6) bad.push(name+' has '+v+' on '+w);
  }
}
document.title='width '+document.documentElement.scrollWidth+' of '+innerWidth+', '+shown.length+' charts, bad: '+bad.slice(0,8).join('; ');
</script></body>"#;

/// Does everything fit a window of this width? Tables may scroll within their own box. The number of charts that show.
fn fits(html: &Path, width: u32) -> Result<usize> {
    let page = std::fs::read_to_string(html).with_context(|| format!("cannot read {}", html.display()))?;
    let page = page.replace("Content-Security-Policy", "x-probe").replace("</body>", PROBE);
    let folder = tempfile::tempdir().context("no temporary folder")?;
    let copy = folder.path().join("probe.html");
    std::fs::write(&copy, page).with_context(|| format!("cannot write {}", copy.display()))?;
    let flags = ["--dump-dom".into(), format!("--window-size={width},2000")];
    let output = browse(&format!("file://{}", copy.display()), &flags)?;
    let dom = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = dom.split_once("<title>width ").and_then(|(_, rest)| rest.split_once("</title>"));
    let (said, _) = said.context("the probe did not answer")?;
    let (size, bad) = said.split_once(" charts, bad: ").context("the probe did not say all")?;
    let (size, n_charts) = size.split_once(", ").context("the probe did not count")?;
    let (needed, given) = size.split_once(" of ").context("the probe did not measure")?;
    let (needed, given): (u32, u32) = (needed.parse()?, given.parse()?);
    ensure!(given <= width.max(500), "the browser gave {given} px instead of {width}");
    ensure!(needed <= given, "the page is {needed} px wide in a window of {given} px");
    ensure!(bad.is_empty(), "in a window of {given} px: {bad}");
    Ok(n_charts.parse()?)
}

/// Runs the browser once and checks that it called nobody and complained of nothing.
fn browse(url: &str, flags: &[String]) -> Result<Output> {
    let profile = tempfile::tempdir().context("no temporary folder for the browser's profile")?;
    let log = profile.path().join("net.json");
    let (stdout, stderr) = (profile.path().join("stdout"), profile.path().join("stderr"));
    let mut child = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr", "--v=0"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("--log-net-log={}", log.display()))
        .args(flags)
        .arg(url)
        .stdout(std::fs::File::create(&stdout)?)
        .stderr(std::fs::File::create(&stderr)?)
        .spawn()
        .context("cannot start chromium; is it installed?")?;
    let started = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if started.elapsed() > PATIENCE {
            child.kill().context("cannot stop chromium")?;
            child.wait()?;
            bail!("chromium did not finish {url} within {PATIENCE:?}");
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    let output = Output { status, stdout: std::fs::read(&stdout)?, stderr: std::fs::read(&stderr)? };
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "chromium failed on {url}: {said}");
    if let Some(line) = said.lines().find(|l| l.contains("CONSOLE")) {
        bail!("the page made the browser complain: {line}");
    }
    let called: Vec<String> = outside(&std::fs::read_to_string(&log).unwrap_or_default());
    ensure!(called.is_empty(), "{url} made the browser call {called:?}");
    Ok(output)
}

/// Requests in a network log (one event per line) that a page started and that leave the machine. The browser's own
/// calls home (its clock, its updates) have "not an origin" as initiator; they fail, since no name resolves.
fn outside(log: &str) -> Vec<String> {
    let mut urls: Vec<String> = Vec::new();
    for line in log.lines() {
        // The last event is followed by the end of the list instead of a comma.
        let line = line.trim().trim_end_matches("]}").trim_end_matches(',');
        let Ok(event) = serde_json::from_str::<serde_json::Value>(line) else { continue };
        let text = |key: &str| event.get("params").and_then(|p| p.get(key)).and_then(|v| v.as_str());
        let (Some(url), Some(initiator)) = (text("url"), text("initiator")) else { continue };
        let is_local = ["file:", "data:", "about:", "blob:"].iter().any(|scheme| url.starts_with(scheme));
        if !is_local && initiator != "not an origin" && !urls.iter().any(|u| u == url) {
            urls.push(url.to_string());
        }
    }
    urls
}

fn ensure_file(path: &PathBuf) -> Result<()> {
    let size = std::fs::metadata(path).with_context(|| format!("chromium made no {}", path.display()))?.len();
    ensure!(size > 2000, "{} is nearly empty: {size} bytes", path.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_testing::{Lacks, skipped};

    #[test]
    fn a_call_in_the_log_is_seen() {
        let event = |url: &str, from: &str| format!("{{\"params\":{{\"initiator\":\"{from}\",\"url\":\"{url}\"}}}},\n");
        let log = event("file:///a", "null")
            + &event("https://home.invalid/", "not an origin")
            + &event("https://x.invalid/", "null");
        assert_eq!(outside(&log), ["https://x.invalid/"]);
    }

    #[test]
    fn every_synthetic_report_opens_prints_fits_and_calls_nobody() {
        if !is_installed() {
            return skipped(
                "every_synthetic_report_opens_prints_fits_and_calls_nobody",
                Lacks::Program("chromium"),
                "no browser",
            );
        }
        let folder = std::env::var("WAKEWATT_PICTURES").map(PathBuf::from);
        let temporary = tempfile::tempdir().unwrap();
        let folder = folder.unwrap_or_else(|_| temporary.path().to_path_buf());
        // One page in every test run; all of them, and the pictures kept, when a folder is named.
        let n = if std::env::var_os("WAKEWATT_PICTURES").is_some() { usize::MAX } else { 1 };
        // The one with every chart first.
        let mut all = wakewatt::report::sample::all();
        all.sort_by_key(|(name, _)| *name != "everything");
        for (name, report) in all.into_iter().take(n) {
            std::fs::create_dir_all(folder.join(name)).unwrap();
            let page = folder.join(name).join("report.html");
            std::fs::write(&page, report.to_html().unwrap()).unwrap();
            check(&page, &folder.join(name)).unwrap_or_else(|e| panic!("{name}: {e:#}"));
        }
    }

    #[test]
    fn a_page_that_is_too_wide_or_calls_out_is_caught() {
        if !is_installed() {
            return skipped("a_page_that_is_too_wide_or_calls_out_is_caught", Lacks::Program("chromium"), "no browser");
        }
        let folder = tempfile::tempdir().unwrap();
        let page = folder.path().join("page.html");
        for (body, expect) in [
            ("<div style='width:2900px'>x</div>", "wide in a window"),
            ("<img src='https://x.invalid/a.png'>", "call"),
            (
                "<svg class='chart' width='200' height='90'><text y='20'>one word</text><text y='24'>two</text><path/><path/></svg>",
                "on one word",
            ),
            ("<p>text</p><svg class='chart' width='200' height='9'></svg>", "200 by 9"),
        ] {
            std::fs::write(&page, format!("<!DOCTYPE html><title>x</title><body>{body}</body>")).unwrap();
            let error = check(&page, &folder.path().join("out")).unwrap_err();
            assert!(format!("{error:#}").contains(expect), "{body}: {error:#}");
        }
    }
}
