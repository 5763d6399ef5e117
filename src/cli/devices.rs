//! `skinbind devices`: the adapters there are, and what they allow.

use serde::Serialize;
use skinbind::Result;
use skinbind::crawl::gpu::CrawlPlan;
use skinbind::gpu::{AdapterReport, adapters};
use skinbind::voxelize::gpu::largest_resolution;

use super::screen;

const EXAMPLES: &str = "\
Examples:
  skinbind devices
  skinbind devices --json";

/// List the GPUs that can compute, and what they allow.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Print the list as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Row {
    #[serde(flatten)]
    adapter: AdapterReport,
    /// The largest resolution whose voxels fit for every mesh; labels are a matter of how many are solid.
    largest_resolution: Option<u32>,
    /// The most labels of solid voxels that the adapter's bindings hold, where no layer is thick.
    labels: u64,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<()> {
    let rows: Vec<Row> = pollster::block_on(adapters())
        .into_iter()
        .map(|adapter| {
            let labels = CrawlPlan::most_labels(adapter.binding_bytes.min(adapter.buffer_bytes));
            Row { largest_resolution: largest_resolution(&adapter), labels, adapter }
        })
        .collect();
    if args.json {
        return screen::print_json(&rows);
    }
    if rows.is_empty() {
        return screen::print("no adapters; everything is computed on the CPU\n");
    }
    let cells: Vec<Vec<String>> = rows.iter().map(cells).collect();
    let heads = ["name", "kind", "backend", "driver", "binding", "resolution", "solid voxels"];
    let mut text = screen::columns(&heads, &cells);
    text += "\nbinding: most bytes a kernel sees at once; resolution: the largest whose grid fits for every mesh;\n\
             solid voxels: most of them with 5 labels each (4 influences a vertex), if the adapter has the memory.\n";
    for row in rows.iter().filter(|row| row.adapter.software) {
        text +=
            &format!("\"{}\" is a software adapter: right results, but slower than the CPU path.\n", row.adapter.name);
    }
    for row in &rows {
        if let Some(why) = &row.adapter.unusable {
            text += &format!("\"{}\" cannot be used: {why}\n", row.adapter.name);
        }
    }
    screen::print(&text)
}

fn cells(row: &Row) -> Vec<String> {
    let Row { adapter, largest_resolution, labels } = row;
    vec![
        adapter.name.clone(),
        adapter.kind.into(),
        adapter.backend.clone(),
        adapter.driver.clone(),
        format!("{} MiB", adapter.binding_bytes >> 20),
        largest_resolution.map_or("none".into(), |resolution| resolution.to_string()),
        (labels / 5).to_string(),
    ]
}
