//! scratch
use wakewatt_sim::server::Server;
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let server = Server::parse_with(&std::fs::read_to_string(&args[0]).unwrap(), &args[2..]).unwrap();
    let reps: usize = args[1].parse().unwrap();
    let mut best = f64::MAX;
    for _ in 0..reps {
        let t = std::time::Instant::now();
        let out = wakewatt_sim::simulate(&server, 1).unwrap();
        let s = t.elapsed().as_secs_f64();
        let n = out.done_per_s.value * out.duration_ns as f64 / 1e9;
        best = best.min(s / n * 1e9);
    }
    println!("{best:.2} ns a request");
}
