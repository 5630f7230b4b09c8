char l[] __attribute__((section("license"),used))="GPL";
