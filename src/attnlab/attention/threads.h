// Work for several threads at once, for the compiled kernels.
#pragma once

#include <dlfcn.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

// `work(i)` for every i below `threads`, at the same time. By the threads that PyTorch has, where its OpenMP can be
// found in the process: they are awake, and while they wait for work of PyTorch's they would only be in the way.
// Otherwise by new ones.
template <typename Work>
void at_once(int64_t threads, const Work& work) {
    if (threads <= 1) return work(0);
    static const auto parallel =
        reinterpret_cast<void (*)(void (*)(void*), void*, unsigned, unsigned)>(dlsym(RTLD_DEFAULT, "GOMP_parallel"));
    static const auto number = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_thread_num"));
    static const auto team = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_num_threads"));
    if (parallel && number && team) {
        struct Task {
            const Work& work;
            int64_t threads;
            std::atomic<bool> done;
        } task{work, threads, {false}};
        const auto share = [](void* given) {
            Task& task = *static_cast<Task*>(given);
            if (team() != task.threads) return;  // fewer than were asked for: they might wait for one another
            task.work(number());
            task.done = true;
        };
        parallel(share, &task, static_cast<unsigned>(threads), 0);
        if (task.done) return;
    }
    std::vector<std::thread> others;
    for (int64_t i = 1; i < threads; ++i) others.emplace_back([&work, i] { work(i); });
    work(0);
    for (auto& other : others) other.join();
}

// Where threads wait for one another. They spin: the work between two meetings is shorter than a sleep.
class Meeting {
    const int64_t all_;
    std::atomic<int64_t> come_{0}, held_{0};

  public:
    explicit Meeting(int64_t all) : all_(all) {}

    void wait() {
        const int64_t held = held_.load();
        if (come_.fetch_add(1) + 1 == all_) {
            come_.store(0);
            held_.fetch_add(1);
            return;
        }
        for (int64_t tries = 0; held_.load(std::memory_order_acquire) == held; ++tries)
            if (tries > 1000) std::this_thread::yield();  // somebody else may need the core
    }
};
