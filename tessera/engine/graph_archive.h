// What the file of a graph has in it (graph_package.h), and the file as bytes. What is read is well-formed;
// whether it makes sense is for others to say.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tessera/base/bytes.h"
#include "tessera/describe/verify_grouping.h"
#include "tessera/engine/graph_package.h"
#include "tessera/plan/archive_types.h"

namespace tessera::engine {

/// Followed by the plans of the groups that have one.
struct SavedGraph {
  std::string device;
  description::Description description;
  description::Schedule schedule;
  std::vector<description::GroupSteps> groups;
  std::vector<std::vector<description::Unit>> units;  ///< by sequence
  std::vector<std::uint8_t> has_plan;                 ///< by group: 1 if it has one
  std::vector<CodeText> code;

  static constexpr auto fields() {
    return std::tuple{
        usual("device", &SavedGraph::device),     usual("description", &SavedGraph::description),
        usual("schedule", &SavedGraph::schedule), usual("groups", &SavedGraph::groups),
        usual("units", &SavedGraph::units),       usual("has_plan", &SavedGraph::has_plan),
        usual("code", &SavedGraph::code)};
  }
};

/// The bytes of a file. `plans` are those of all groups; null: the group has none.
[[nodiscard]] std::string to_archive(const SavedGraph& saved, std::span<const plan::PlanRef> plans);

struct ReadGraph {
  SavedGraph saved;
  std::vector<std::shared_ptr<plan::Plan>> plans;  ///< by group
};
[[nodiscard]] Result<ReadGraph> from_archive(const Bytes& bytes);

}  // namespace tessera::engine

namespace tessera::plan::archive {

template <>
inline constexpr std::size_t enumerators<description::Access> =
    static_cast<std::size_t>(description::Access::append) + 1;
template <>
inline constexpr std::size_t enumerators<description::Lifetime> =
    static_cast<std::size_t>(description::Lifetime::region) + 1;
template <>
inline constexpr std::size_t enumerators<description::NodeKind> =
    static_cast<std::size_t>(description::NodeKind::captured) + 1;
template <>
inline constexpr std::size_t enumerators<description::RegionKind> =
    static_cast<std::size_t>(description::RegionKind::for_) + 1;
template <>
inline constexpr std::size_t enumerators<description::Cause> =
    static_cast<std::size_t>(description::Cause::write_after_write) + 1;
template <>
inline constexpr std::size_t enumerators<description::StepKind> =
    static_cast<std::size_t>(description::StepKind::zero) + 1;
template <>
inline constexpr std::size_t enumerators<description::Home::Kind> =
    static_cast<std::size_t>(description::Home::Kind::unused) + 1;

static_assert(lists_all_members<description::Place> && lists_all_members<description::Within> &&
              lists_all_members<description::KernelFile> && lists_all_members<description::Parameter> &&
              lists_all_members<description::Node> && lists_all_members<description::Buffer> &&
              lists_all_members<description::PinName> && lists_all_members<description::Edge> &&
              lists_all_members<description::Dependency> && lists_all_members<description::Region> &&
              lists_all_members<description::Block> && lists_all_members<description::Description>);
static_assert(lists_all_members<description::Wait> && lists_all_members<description::Step> &&
              lists_all_members<description::Sequence> && lists_all_members<description::Home> &&
              lists_all_members<description::MemoryPlan> && lists_all_members<description::Schedule>);
static_assert(lists_all_members<description::Unit> && lists_all_members<description::GroupSteps> &&
              lists_all_members<engine::CodeText> && lists_all_members<engine::SavedGraph>);

}  // namespace tessera::plan::archive
