//! `load steps` and `load -- CMD` end to end, at a small size: kept with --save, shown by `report`, joined by `compare`.

use crate::schemas::{assert_valid, validator};
use crate::tool::{Said, run, said, wakewatt};
use std::fs;
use std::path::Path;

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A transaction is the same work in both, a level a fifth of a second.
fn steps(file: &Path, work: &str) -> Said {
    let cpu = wakewatt_host::affinity::allowed_cpus().unwrap().first().unwrap().to_string();
    let args = ["load", "steps", "--levels", "200/s,idle", "--interval", "200ms", "--seed", "1", "--cpus", &cpu];
    said(&mut wakewatt(&[&args[..], &["--work", work, "--save", text(file)]].concat()))
}

#[test]
fn load_steps_are_kept_shown_and_compared() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    for name in ["a.run", "b.run"] {
        let said = steps(&at(name), "100");
        assert_eq!(said.code, Some(0), "{said:?}");
        assert!(said.err.contains("read it with: wakewatt report"), "{said:?}");
        let document = assert_valid(&validator("run"), name, &fs::read_to_string(at(name)).unwrap());
        assert_eq!((&document["command"], &document["load"][0]["kind"]), (&"load steps".into(), &"steps".into()));
        assert_eq!(document["load"][0]["levels"].as_array().unwrap().len(), 2);
    }
    let page = at("page.html");
    let said = run(&["report", text(&at("a.run")), "-o", text(&page)]);
    assert_eq!((said.code, said.out.as_str()), (Some(0), ""), "{said:?}");
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("200/s") && page.contains("<svg"), "no chart of the load");
    let said = run(&["compare", text(&at("a.run")), text(&at("b.run"))]);
    assert_eq!(said.code, Some(0), "{said:?}");
}

#[test]
fn a_load_of_a_command_is_kept_and_its_exit_code_too() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("c.run");
    let said = run(&["load", "--save", text(&file), "--", "sh", "-c", "echo done"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let document = assert_valid(&validator("run"), "c.run", &fs::read_to_string(&file).unwrap());
    assert_eq!(document["load"][0]["kind"], "command");
    let lower =
        ["load", "--metric", "took ([0-9]+)", "--metric-better", "lower", "--json", "--", "sh", "-c", "echo took 7"];
    let document = assert_valid(&validator("load"), "load", &run(&lower).out);
    let figure = &document["run"]["levels"][0]["figure"];
    assert_eq!((&figure["value"], &figure["better"]), (&7.0.into(), &"lower".into()), "a time is no rate");
    assert_eq!(run(&["load", "--metric-better", "lower", "--", "true"]).code, Some(2));
    let said = run(&["load", "--save", "/no/such/folder/c.run", "--", "sh", "-c", "echo done"]);
    assert!(said.code == Some(4) && !said.out.contains("done"), "nothing runs for nothing: {said:?}");
}
