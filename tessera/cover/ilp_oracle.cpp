#include "tessera/cover/ilp_oracle.h"

#include <algorithm>
#include <bitset>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::cover;

namespace {

constexpr std::size_t most_nodes = 512;
using NodeBits = std::bitset<most_nodes>;

/// The nodes that each node leads to: edges are followed until nothing changes.
std::vector<NodeBits> find_after(const Problem& problem) {
  std::vector<NodeBits> after(problem.node_count);
  for (bool has_changed = true; has_changed;) {
    has_changed = false;
    for (const Edge& edge : problem.edges) {
      NodeBits more = after[edge.producer] | after[edge.consumer];
      more.set(edge.consumer);
      has_changed = has_changed || more != after[edge.producer];
      after[edge.producer] = more;
    }
  }
  return after;
}

/// The group of each node in the contracted graph, and which groups are led to by which.
class Contracted {
 public:
  Contracted(const Problem& problem, const std::vector<std::uint32_t>& tiles)
      : problem_(problem), tiles_(tiles), group_of_(problem.node_count) {
    groups_ = static_cast<std::uint32_t>(tiles.size());
    for (std::uint32_t node = 0; node < problem.node_count; ++node) group_of_[node] = groups_++;
    for (std::uint32_t i = 0; i < tiles.size(); ++i)
      for (std::uint32_t node : problem.candidates[tiles[i]].nodes) group_of_[node] = i;
    next_.resize(groups_);
    for (const Edge& edge : problem.edges)
      if (group_of_[edge.producer] != group_of_[edge.consumer])
        next_[group_of_[edge.producer]].push_back(group_of_[edge.consumer]);
  }

  /// The tiles on a shortest cycle; empty if there is none.
  [[nodiscard]] Conflict shortest_cycle() const {
    Conflict best;
    for (std::uint32_t start = 0; start < tiles_.size(); ++start) {
      Conflict cycle = cycle_through(start);
      if (!cycle.empty() && (best.empty() || cycle.size() < best.size())) best = std::move(cycle);
    }
    return best;
  }

 private:
  /// Breadth first from `start` until it is met again.
  [[nodiscard]] Conflict cycle_through(std::uint32_t start) const {
    std::vector<std::uint32_t> from(groups_, groups_);
    std::vector<std::uint32_t> queue{start};
    for (std::size_t i = 0; i < queue.size(); ++i)
      for (std::uint32_t group : next_[queue[i]]) {
        if (group == start) return tiles_between(start, queue[i], from);
        if (from[group] != groups_) continue;
        from[group] = queue[i];
        queue.push_back(group);
      }
    return {};
  }
  [[nodiscard]] Conflict tiles_between(std::uint32_t start, std::uint32_t last,
                                       const std::vector<std::uint32_t>& from) const {
    Conflict cycle{tiles_[start]};
    for (; last != start; last = from[last])
      if (last < tiles_.size() && problem_.candidates[tiles_[last]].nodes.size() > 1)
        cycle.push_back(tiles_[last]);
    return cycle;
  }

  const Problem& problem_;
  const std::vector<std::uint32_t>& tiles_;
  std::uint32_t groups_ = 0;
  std::vector<std::uint32_t> group_of_;
  std::vector<std::vector<std::uint32_t>> next_;
};

void append_terms(std::string& out, const std::vector<std::string>& terms) {
  for (std::size_t i = 0; i < terms.size(); ++i) {
    if (i > 0) out += i % 12 == 0 ? "\n + " : " + ";
    out += terms[i];
  }
}

std::string read_all(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream out;
  out << file.rdbuf();
  return out.str();
}

}  // namespace

std::vector<Conflict> tessera::cover::pair_conflicts(const Problem& problem) {
  const std::vector<NodeBits> after = find_after(problem);
  const std::size_t count = problem.candidates.size();
  std::vector<NodeBits> nodes(count);
  std::vector<NodeBits> reached(count);
  for (std::size_t i = 0; i < count; ++i)
    for (std::uint32_t node : problem.candidates[i].nodes) {
      nodes[i].set(node);
      reached[i] |= after[node];
    }
  std::vector<Conflict> out;
  for (std::uint32_t i = 0; i < count; ++i) {
    for (std::uint32_t node = 0; node < problem.node_count; ++node)
      if (!nodes[i][node] && reached[i][node] && (after[node] & nodes[i]).any()) {
        out.push_back({i});
        break;
      }
    for (std::uint32_t j = 0; j < i; ++j)
      if ((nodes[i] & nodes[j]).none() && (reached[i] & nodes[j]).any() && (reached[j] & nodes[i]).any())
        out.push_back({j, i});
  }
  return out;
}

std::string tessera::cover::to_lp(const Problem& problem, const std::vector<Conflict>& conflicts) {
  std::vector<std::string> terms;
  std::vector<std::vector<std::string>> rows(problem.node_count);
  std::string names;
  for (std::uint32_t i = 0; i < problem.candidates.size(); ++i) {
    terms.push_back(cat(problem.candidates[i].cost, " x", i));
    for (std::uint32_t node : problem.candidates[i].nodes) rows[node].push_back(cat("x", i));
    names += cat(" x", i, "\n");
  }
  for (std::uint32_t node = 0; node < problem.node_count; ++node) {
    terms.push_back(cat(problem.uncovered_cost[node], " y", node));
    rows[node].push_back(cat("y", node));
    names += cat(" y", node, "\n");
  }
  std::string out = "Minimize\n cost: ";
  append_terms(out, terms);
  out += "\nSubject To\n";
  for (std::uint32_t node = 0; node < problem.node_count; ++node) {
    out += cat(" n", node, ": ");
    append_terms(out, rows[node]);
    out += " = 1\n";
  }
  for (std::size_t k = 0; k < conflicts.size(); ++k) {
    out += cat(" k", k, ": ");
    std::vector<std::string> members;
    for (std::uint32_t i : conflicts[k]) members.push_back(cat("x", i));
    append_terms(out, members);
    out += cat(" <= ", conflicts[k].size() - 1, "\n");
  }
  return out + "Binaries\n" + names + "End\n";
}

std::optional<IlpOracle> IlpOracle::find(Program program) {
  const char* probe =
      program == Program::cbc ? "command -v cbc >/dev/null 2>&1" : "command -v glpsol >/dev/null 2>&1";
  if (std::system(probe) != 0) return std::nullopt;
  return IlpOracle(program);
}

std::optional<double> IlpOracle::least_cost(const Problem& problem, int seconds) const {
  std::vector<Conflict> conflicts = pair_conflicts(problem);
  for (;;) {
    const auto chosen = ask(problem, conflicts, seconds);
    if (!chosen) return std::nullopt;
    Conflict cycle = Contracted(problem, chosen->tiles).shortest_cycle();
    if (cycle.empty()) return chosen->cost;
    conflicts.push_back(std::move(cycle));
  }
}

std::optional<IlpOracle::Chosen> IlpOracle::ask(const Problem& problem,
                                                const std::vector<Conflict>& conflicts, int seconds) const {
  std::string folder = (std::filesystem::temp_directory_path() / "tessera-cover-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return std::nullopt;
  std::ofstream(folder + "/problem.lp") << to_lp(problem, conflicts);
  const std::optional<std::string> names = run(folder, seconds);
  std::filesystem::remove_all(folder);
  if (!names) return std::nullopt;
  Chosen out;
  std::istringstream in(*names);
  for (std::string name; in >> name;) {
    const auto index = static_cast<std::uint32_t>(std::stoul(name.substr(1)));
    if (name[0] == 'x') {
      out.tiles.push_back(index);
      out.cost += problem.candidates[index].cost;
    } else {
      out.cost += problem.uncovered_cost[index];
    }
  }
  return out;
}

/// The names of the variables that are 1 in a proven optimum, or nothing.
std::optional<std::string> IlpOracle::run(const std::string& folder, int seconds) const {
  const bool is_cbc = program_ == Program::cbc;
  const std::string command =
      is_cbc ? cat("cbc ", folder, "/problem.lp sec ", seconds, " ratio 0 allow 0 solve solution ", folder,
                   "/solution quit >", folder, "/log 2>&1")
             : cat("glpsol --lp ", folder, "/problem.lp --tmlim ", seconds, " --cuts -o ", folder,
                   "/solution >", folder, "/log 2>&1");
  if (std::system(command.c_str()) != 0) return std::nullopt;
  std::istringstream lines(read_all(folder + "/solution"));
  std::string names;
  bool is_proven = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(is_cbc ? "Optimal" : "Status:     INTEGER OPTIMAL")) is_proven = true;
    std::istringstream fields(line);
    std::string number;
    std::string name;
    std::string star;
    std::string value;
    fields >> number >> name;
    if (!is_cbc) fields >> star;  // marks an integer column
    fields >> value;
    if (name.size() > 1 && (name[0] == 'x' || name[0] == 'y') && std::atof(value.c_str()) > 0.5)
      names += name + ' ';
  }
  if (!is_proven) return std::nullopt;
  return names;
}
