"""`tessera tile` as a user calls it: the answer, the drawings, the traces, and what it refuses."""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop())
PROGRAM = sys.argv.pop()
EXAMPLES = ROOT / "examples/tile"


def tile(*arguments, stdin=""):
    command = [PROGRAM, "tile", *map(str, arguments)]
    return subprocess.run(command, input=stdin, capture_output=True, text=True)


def answer(*arguments, stdin=""):
    result = tile(*arguments, "--json", stdin=stdin)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def file(self, name, content):
        path = self.folder / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path


class Answers(Files):
    def test_the_example_of_the_seed(self):
        found = answer("--dsl", "1:mm->2:relu->3:mm->4:relu", "--pattern", "mm=1:mm", "--pattern", "relu=1:relu",
                       "--pattern", "mm_relu=a:mm->b:relu")
        ms = found.pop("ms")
        self.assertGreaterEqual(ms, 0)
        self.assertEqual(found, {
            "nodes": 4, "coverage": 4, "cost": 2.0,
            "tiles": [{"pattern": "mm_relu", "map": {"a": "1", "b": "2"}}, {"pattern": "mm_relu", "map": {"a": "3", "b": "4"}}],
            "order": [0, 1], "uncovered": [], "optimal": True, "bound": 2.0, "gap": 0.0, "candidates": 6, "complete": True})

    def test_inputs_that_take_anything_are_not_permuted(self):
        graph = self.file("wide.json", {"nodes": [{"id": "a", "op": "add", "inputs": [f"x{i}" for i in range(40)]}]})
        library = self.file("nulls.json", {"patterns": [
            {"name": "p", "nodes": [{"id": "a", "op": "add", "inputs": [None] * 40}]}]})
        found = answer(graph, library)
        self.assertEqual((found["coverage"], found["candidates"]), (1, 1))

    def test_constants_are_compared_exactly(self):
        def covered(given, wanted):
            graph = self.file("constant.json", {"nodes": [{"id": "a", "op": "add", "inputs": ["x", given]}]})
            library = self.file("wanted.json", {"patterns": [
                {"name": "p", "nodes": [{"id": "a", "op": "add", "inputs": ["x", wanted]}]}]})
            return answer(graph, library)["coverage"]
        self.assertEqual(covered(1, 1.0), 1)
        self.assertEqual(covered(-0.0, 0), 0)
        self.assertEqual(covered(9007199254740993, 9007199254740992.0), 0)

    def test_files(self):
        graph = self.file("graph.json", {
            "nodes": [{"id": "1", "op": "mm", "inputs": ["x", "w"], "attrs": {}}, {"id": "2", "op": "relu", "inputs": ["1"]}],
            "outputs": ["2"], "commutative": ["add", "mul"]})
        library = self.file("library.json", {"patterns": [
            {"name": "mm_relu", "nodes": [{"id": "a", "op": "mm", "inputs": ["p", "q"]}, {"id": "b", "op": "relu", "inputs": ["a"]}],
             "outputs": ["b"], "cost": 1.0}]})
        found = answer(graph, library)
        self.assertEqual(found["tiles"], [{"pattern": "mm_relu", "map": {"a": "1", "b": "2"}}])
        self.assertEqual(answer(graph, library, "--pattern", "cheap=1:mm->2:relu @cost=0.5")["tiles"][0]["pattern"], "cheap")
        self.assertEqual(answer("-", library, stdin=graph.read_text())["cost"], 1.0)
        self.assertEqual(answer("--dsl", "1:mm->2:relu", library)["coverage"], 0, "mm has no inputs here")

    def test_tiles_come_in_an_order_in_which_they_can_run(self):
        graph = self.file("graph.json", {"nodes": [{"id": str(i), "op": "f", "inputs": [str(i + 1)]} for i in range(9)]
                                         + [{"id": "9", "op": "f", "inputs": ["x"]}]})
        found = answer(graph, "--pattern", "f=1:f", "--pattern", "ff=1:f->2:f @cost=1.5")
        place = {node: i for i, one in enumerate(found["tiles"]) for node in one["map"].values()}
        self.assertEqual(len(place), 10)
        for i in range(9):
            self.assertLessEqual(place[str(i + 1)], place[str(i)])
        self.assertEqual(found["order"], list(range(len(found["tiles"]))))

    def test_objectives(self):
        arguments = ["--dsl", "1:a->2:b->3:c", "--pattern", "abc=1:a->2:b->3:c @cost=9", "--pattern", "one=1:a|b|c @cost=2"]
        self.assertEqual(len(answer(*arguments)["tiles"]), 3)
        self.assertEqual(answer(*arguments)["cost"], 6.0)
        self.assertEqual(len(answer(*arguments, "--objective", "coverage")["tiles"]), 1)
        cheap = answer(*arguments, "--uncovered", "0.5")
        self.assertEqual((cheap["cost"], cheap["coverage"], cheap["uncovered"]), (1.5, 0, ["1", "2", "3"]))

    def test_budget(self):
        found = answer("--dsl", "1:a->2:b", "--pattern", "ab=1:a->2:b", "--budget-ms", "5000")
        self.assertTrue(found["optimal"])

    def test_cyclic_contractions_are_avoided(self):
        found = answer(EXAMPLES / "cycle.json", EXAMPLES / "cycle_library.json")
        self.assertEqual(found["cost"], 4.0, "one pair and two alone; both pairs would cost 2 and could not run")

    def test_examples(self):
        for name, cost in [("mlp", 29.1), ("softmax", 29.3)]:
            found = answer(EXAMPLES / f"{name}.json", EXAMPLES / "library.json")
            self.assertEqual(found["coverage"], found["nodes"])
            self.assertAlmostEqual(found["cost"], cost, msg=name)
        regions = answer(EXAMPLES / "softmax.json", EXAMPLES / "library.json", "--regions")
        self.assertEqual(regions["tiles"][0]["pattern"], "region")
        self.assertEqual(len(regions["tiles"][0]["map"]), 5)

    def test_the_same_answer_every_time(self):
        runs = set()
        for _ in range(3):
            found = answer(EXAMPLES / "mlp.json", EXAMPLES / "library.json", "--regions")
            found.pop("ms")
            runs.add(json.dumps(found))
        self.assertEqual(len(runs), 1)

    def test_what_was_not_listed_is_said(self):
        found = answer("--dsl", "1:relu->2:exp", "--regions")
        self.assertEqual(found["incomplete"], ["regions: the iteration space of 2 ops is not known"])
        self.assertEqual((found["complete"], found["optimal"]), (False, False))
        text = tile("--dsl", "1:relu->2:exp", "--regions", "--pattern", "r=1:relu").stdout.splitlines()[0]
        self.assertIn("best of the listed candidates, which are not all", text)

    def test_wrong_costs_and_names_on_the_command_line(self):
        graph = ["--dsl", "1:mm->2:relu"]
        for patterns, message in [
                (["a=1:mm", "a=1:relu"], '--pattern:1:1: pattern name "a" is used twice'),
                (["a=1:mm @cost=1e308", "b=1:relu @cost=1.7e308"], "add up to more than a double can hold"),
                (["a=1:mm @cost=1e400"], '--pattern a:1:12: cost "1e400" is not a finite number')]:
            result = tile(*graph, *(word for one in patterns for word in ("--pattern", one)))
            self.assertEqual(result.returncode, 2, result.stdout)
            self.assertIn(message, result.stderr)

    def test_text(self):
        result = tile("--dsl", "1:mm->2:relu->3:foo", "--pattern", "mm_relu=a:mm->b:relu", "--uncovered", "7")
        self.assertEqual(result.returncode, 0)
        self.assertRegex(result.stdout, r"^2 of 3 nodes covered by 1 tiles, cost 8\.0 \(optimal; 1 candidates, [\d.]+ ms\)\n"
                                        r"  mm_relu: a=1 b=2\n  uncovered: 3\n$")

    def test_a_long_chain(self):
        count = 100_000
        nodes = [{"id": str(i), "op": "abc"[i % 3], "inputs": [str(i - 1)] if i else ["x"]} for i in range(count)]
        found = answer(self.file("chain.json", {"nodes": nodes}), "--pattern", "ab=1:a->2:b", "--pattern", "bc=1:b->2:c",
                       "--pattern", "c=1:c", "--pattern", "a=1:a", "--pattern", "cab=1:c->2:a->3:b")
        self.assertTrue(found["optimal"])
        self.assertEqual(found["coverage"], count)


class Drawings(Files):
    def test_dot(self):
        path = self.folder / "out.dot"
        result = tile("--dsl", "1:mm->2:relu->3:foo", "--pattern", "mm \"relu\"=a:mm->b:relu", "--dot", path)
        self.assertEqual(result.returncode, 0, result.stderr)
        text = path.read_text()
        self.assertEqual(text.count("subgraph cluster_"), 1)
        self.assertEqual(text.count("style=dashed"), 1)
        self.assertEqual(text.count(" -> "), 2)
        if shutil.which("dot"):
            drawn = subprocess.run(["dot", "-Tsvg", path], capture_output=True, text=True)
            self.assertEqual(drawn.returncode, 0, drawn.stderr)

    def test_trace(self):
        folder = self.folder / "trace"
        result = tile("--dsl", "1:mm->2:relu->3:mm->4:relu", "--pattern", "mm=1:mm", "--pattern", "relu=1:relu",
                      "--pattern", "mm_relu=1:mm->2:relu", "--trace", folder)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(sorted(path.name for path in folder.iterdir()), ["candidates.txt", "result.txt", "subproblems.txt"])
        candidates = (folder / "candidates.txt").read_text()
        self.assertTrue(candidates.startswith("6 candidates\n"))
        self.assertEqual(len(re.findall(r"^\d+ library (mm|relu|mm_relu) cost 1\.0: ", candidates, re.M)), 6)
        self.assertRegex((folder / "subproblems.txt").read_text(), r"\d+ by (frontier|search), \d+ states; ")
        self.assertIn("mm_relu: 1=1 2=2", (folder / "result.txt").read_text())

    def test_what_cannot_be_written_is_an_error(self):
        for option in ["--dot", "--trace"]:
            result = tile("--dsl", "1:mm", "--pattern", "mm=1:mm", option, self.folder / "no" / "such" / "place")
            self.assertEqual(result.returncode, 2)
            self.assertIn("no/such/place", result.stderr)


class Refusals(Files):
    def refuse(self, *arguments, says, stdin=""):
        result = tile(*arguments, stdin=stdin)
        self.assertEqual(result.returncode, 2, f"{arguments} {result.stdout}")
        self.assertEqual(result.stdout, "")
        self.assertIn(says, result.stderr)

    def test_graphs(self):
        node = {"id": "1", "op": "a"}
        rows = [
            ({"nodes": [node, node]}, 'node id "1" is used twice'),
            ({"nodes": [node], "outputs": ["7"]}, '"7" is no node id'),
            ({"nodes": [{"id": "1", "op": "a", "inputs": ["2"]}, {"id": "2", "op": "a", "inputs": ["1"]}]},
             'the nodes form a cycle: "1" -> "2" -> "1"'),
            ({"nodes": [{"id": "1", "op": "a", "inputs": ["1"]}]}, '.json:1:19: the nodes form a cycle: "1" -> "1"'),
            ({"nodes": [{"op": "a"}]}, 'missing field "id"'),
            ({"nodes": 3}, "expected an array"),
            ([], "expected an object"),
            ({"nodes": [node], "nodez": 1}, 'unknown field "nodez"'),
            ("", "expected a value"),
            ('{"nodes":[{"id":"1","op":"a"}],"nodes":[]}', "nodes"),
            ("[" * 1_000_000, "nested deeper than 256 levels"),
            ('{"nodes":' * 1_000_000, "nested deeper than 256 levels"),
            ('{"nodes":[' + '{"id":"1","op":"a","attrs":' * 1_000_000, "nested deeper than 256 levels"),
        ]
        for graph, says in rows:
            self.refuse(self.file("graph.json", graph), "--pattern", "a=1:a", says=says)

    def test_libraries(self):
        node = {"id": "a", "op": "x"}

        def library(**fields):
            return {"patterns": [{"name": "p", "nodes": [node], **fields}]}

        rows = [
            (library(nodes=[]), 'pattern "p" is empty'),
            (library(nodes=[node, node]), 'node id "a" is used twice'),
            (library(nodes=[node, {"id": "b", "op": "x"}]), "the pattern is not connected"),
            (library(nodes=[{"id": "a", "op": "x", "inputs": ["a"]}]), "the nodes form a cycle"),
            (library(outputs=["b"]), '"b" is no node id of the pattern'),
            (library(cost=-1), "cost -1.0 is negative"),
            ('{"patterns":[{"name":"p","nodes":[{"id":"a","op":"x"}],"cost":1e999}]}', "expected a finite number"),
            ('{"patterns":[{"name":"p","nodes":[{"id":"a","op":"x"}],"cost":NaN}]}', "expected a value"),
            (library(cost="1"), "expected a number"),
            ({"pattern": []}, 'unknown field "pattern"'),
            ("[" * 1_000_000, "nested deeper than 256 levels"),
        ]
        for content, says in rows:
            self.refuse("--dsl", "1:x", self.file("library.json", content), says=says)

    def test_texts_with_columns(self):
        self.refuse("--dsl", "1:mm->2", "--pattern", "a=1:a", says='--dsl:1:7: node "2" is not defined')
        self.refuse("--dsl", "1:mm->2:relu->1", "--pattern", "a=1:a", says="the nodes form a cycle")
        self.refuse("--dsl", "1:mm", "--pattern", "a=1:mm->", says="--pattern a:1:7: expected a node after '->'")
        self.refuse("--dsl", "1:mm", "--pattern", "a=1:mm; 2:relu", says="the pattern is not connected")
        self.refuse("--dsl", "1:mm", "--pattern", "a=1:mm @cost=nan", says="--pattern a:1:12: cost")
        self.refuse("--dsl", "1:mm", "--pattern", "a=", says="expected a node")

    def test_arguments(self):
        self.refuse(says="no graph")
        self.refuse("--dsl", "1:mm", says="no patterns")
        self.refuse("/nonexistent.json", says="cannot read /nonexistent.json")
        self.refuse("--dsl", "1:mm", "--pattern", "a=1:mm", "--objective", "speed", says="unknown objective 'speed'")
        self.refuse("--dsl", "1:mm", "--pattern", "a=1:mm", "--budget-ms", "-1", says="negative")
        self.refuse("--dsl", "1:mm", "--pattern", "a=1:mm", "--uncovered", "inf", says="not a finite number")
        self.refuse("--dsl", "1:mm", "--pattern", "a=1:mm", "--uncovered", "-1", says="not a finite number")
        self.refuse("--dsl", "1:mm", "--pattern", "a=1:mm", "--uncovered", "1", "--objective", "coverage", says="--uncovered")
        self.refuse(self.folder / "none.json", "--pattern", "a=1:mm", says="cannot read")
        self.refuse("-", "-", says="standard input can be read once only")


if __name__ == "__main__":
    unittest.main()
