"""A sweep on a Ray cluster that loses a machine in the middle."""

import subprocess
import sys

import pytest

SCRIPT = """
import time
import ray
from ray.cluster_utils import Cluster
import stiction

def main():
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
    cluster.wait_for_nodes()
    lost = []

    def on_progress(done, total, row):
        if done >= 6 and not lost:
            lost.append(nodes[0])
            cluster.remove_node(nodes[0], allow_graceful=False)

    table = stiction.sweep(
        "pinch", {"friction": [0.001, 0.3, 0.5], "force": [5, 20]}, seeds=4, time=2.0,
        ray=cluster.address, on_progress=on_progress,
    )
    assert lost
    assert len(table) == table.asked == 24
    assert table.count("done") == 24, [row["error"] for row in table.rows]
    runs = {(row["friction"], row["force"], row["seed"]) for row in table.rows}
    assert len(runs) == 24
    cluster.shutdown()
    print("nothing lost, nothing twice")

main()
"""


@pytest.mark.long
def test_a_cluster_that_loses_a_worker_loses_no_run_and_runs_none_twice(tmp_path):
    pytest.importorskip("ray")
    script = tmp_path / "cluster.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=540, check=False
    )
    assert "nothing lost, nothing twice" in done.stdout, done.stderr[-3000:]
