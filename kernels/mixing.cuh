// Mixing of bits by the finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), as on the host.
#pragma once
#include "common.cuh"

DEVICE u64 mixed(u64 a) {
    a = (a ^ (a >> 30)) * 0xbf58476d1ce4e5b9ull;
    a = (a ^ (a >> 27)) * 0x94d049bb133111ebull;
    return a ^ (a >> 31);
}
