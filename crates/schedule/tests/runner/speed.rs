#[test]
fn speed() {
    let groups = super::vectors::groups();
    let rows: Vec<_> = groups["next"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|r| r["group"] == "plain")
        .map(|r| {
            (
                schedule::slot::Pattern::Cron(
                    schedule::cron::Cron::parse(r["expr"].as_str().unwrap()).unwrap(),
                ),
                schedule::zone::Zone::named(r["zone"].as_str().unwrap()).unwrap(),
                super::vectors::at(r["from"].as_str().unwrap()),
            )
        })
        .collect();
    let start = std::time::Instant::now();
    let mut n = 0;
    for (p, z, f) in &rows {
        n += p.slots(z, *f).take(20000).count();
    }
    println!("together {} {:?} {}/s", n, start.elapsed(), n as f64 / start.elapsed().as_secs_f64());
    let start = std::time::Instant::now();
    let mut n = 0;
    for (p, z, f) in &rows {
        let mut f = *f;
        for _ in 0..2000 {
            if let Some(s) = p.next(z, f) {
                f = s.at;
                n += 1;
            }
        }
    }
    println!("alone {} {:?} {}/s", n, start.elapsed(), n as f64 / start.elapsed().as_secs_f64());
}
