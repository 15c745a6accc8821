// SPDX-License-Identifier: Apache-2.0
// The benchmark's library in plain C++ with std::shared_ptr, for the peers that wrap such code.
#ifndef TETHER_BENCH_PYTHON_SHARED_NODE_H_
#define TETHER_BENCH_PYTHON_SHARED_NODE_H_

#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

struct Node {
  explicit Node(int64_t value) : value(value) {}
  int64_t value;
  std::shared_ptr<Node> next;
  std::vector<std::shared_ptr<Node>> children;
};

// Has methods, which Node has not.
struct Counter {
  explicit Counter(int64_t value) : value(value) {}
  int64_t value;
  int64_t Get() const { return value; }
  int64_t Plus(int64_t n) const { return value + n; }
  static int64_t Twice(int64_t n) { return 2 * n; }
};

struct Pair {
  Pair(int64_t a, int64_t b) : a(a), b(b) {}
  int64_t a;
  int64_t b;
};

inline int64_t Fail(int64_t n) {
  if (n != 0) throw std::invalid_argument("as asked");
  return n;
}

using Array = std::vector<std::shared_ptr<Node>>;
using Map = std::unordered_map<std::string, std::shared_ptr<Node>>;

inline std::shared_ptr<Node> MakeNode(int64_t value) { return std::make_shared<Node>(value); }

inline Array MakeMany(int64_t n) {
  Array nodes;
  nodes.reserve(n);
  for (int64_t i = 0; i < n; ++i) nodes.push_back(MakeNode(i));
  return nodes;
}

// Kept until the process ends, and not even destroyed then.
inline void Keep(const Array& nodes) { new Array(nodes); }

inline std::shared_ptr<Node> Identity(std::shared_ptr<Node> node) { return node; }
inline int64_t Add(int64_t a, int64_t b) { return a + b; }
inline std::string EchoStr(const std::string& text) { return text; }

// Whether another thread can drop what `holder` holds while this one keeps the interpreter locked.
inline bool DropOnThread(Node& holder) {
  auto done = std::make_shared<std::promise<void>>();
  std::thread([done, next = std::move(holder.next)]() mutable {
    next.reset();
    done->set_value();
  }).detach();
  return done->get_future().wait_for(std::chrono::milliseconds(300)) == std::future_status::ready;
}

#endif  // TETHER_BENCH_PYTHON_SHARED_NODE_H_
