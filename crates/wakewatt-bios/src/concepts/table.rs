//! What to look for, by concept: names of Dell, HPE, Lenovo, Supermicro, AMI and others, and what words mean there.
//!
//! Names come from registries and dumps of real machines and from vendors' papers; values that only papers have are harmless,
//! because the live registry must list them. A concept's first form that exists decides. Where a maker has the inverse
//! (`MonitorandMWAITDisable`), or a name that only looks so (`ProcessorHyperThreadingDisable`), the words are turned, not the names.

use super::{Concept, Form, Master, Part};

type Words = &'static [(&'static str, &'static str)];

const ON_OFF: Words = &[("on", "Enabled"), ("off", "Disabled")];
const ON_AUTO: Words = &[("on", "Enabled"), ("on", "Auto"), ("off", "Disabled")];
const AUTO_OFF: Words = &[("on", "Auto"), ("off", "Disabled"), ("force", "Enabled")];
const BIAS: Words = &[
    ("performance", "Maximum Performance"),
    ("performance", "Performance"),
    ("balanced", "Balanced Performance"),
    ("efficiency", "Balanced Power"),
    ("power", "Power"),
];
const NPS: Words = &[("off", "NPS1"), ("nps1", "NPS1"), ("nps2", "NPS2"), ("nps4", "NPS4"), ("auto", "Auto")];

const fn one(part: &'static [Part]) -> Form {
    Form::Led(part)
}

/// All of them, in the order of the table that people read.
#[rustfmt::skip]
pub const CONCEPTS: &[Concept] = &[
    Concept { id: "profile", title: "system profile", forms: &[
        one(&[Part("SysProfile", &[("performance", "PerfOptimized"), ("os", "PerfPerWattOptimizedOs"), ("balanced", "PerfPerWattOptimizedDapc"), ("dense", "DenseCfgOptimized"), ("custom", "Custom")])]),
        one(&[Part("OperatingModes_ChooseOperatingMode", &[("performance", "MaximumPerformance"), ("balanced", "Efficiency_FavorPerformance"), ("efficiency", "Efficiency_FavorPower"), ("efficiency", "MaximumEfficiency"), ("power", "MinimalPower"), ("custom", "CustomMode")])]),
        one(&[Part("PowerProfile", &[("performance", "MaxPerf"), ("balanced", "BalancedPowerPerf"), ("power", "MinPower"), ("custom", "Custom")])]),
        one(&[Part("PowerTechnology", &[("efficiency", "Energy Efficient"), ("off", "Disable"), ("custom", "Custom")])]),
        one(&[Part("PowerProfileSelection", &[("performance", "High Performance Mode"), ("efficiency", "Efficiency Mode"), ("io", "Maximum IO Performance Mode")])]),
        one(&[Part("WorkloadProfile", &[("performance", "GeneralPeakFrequencyCompute"), ("throughput", "GeneralThroughputCompute"), ("efficiency", "GeneralPowerEfficientCompute"), ("latency", "LowLatency"), ("hpc", "HighPerformanceCompute(HPC)"), ("custom", "Custom")])]),
        one(&[Part("BenchMarkSelection", &[("custom", "Custom")])]),
    ] },
    Concept { id: "workload", title: "workload preset", forms: &[
        one(&[Part("WorkloadProfile", &[("none", "NotConfigured"), ("none", "NotAvailable"), ("latency", "LowLatencyOptimizedProfile"), ("latency", "LowLatency"), ("hpc", "HpcProfile"), ("hpc", "HighPerformanceCompute(HPC)"), ("virtualization", "VtOptimizedProfile"), ("virtualization", "Virtualization-MaxPerformance"), ("database", "DbOptimizedProfile"), ("custom", "Custom")])]),
        one(&[Part("SystemSettings_WorkloadProfile", &[("custom", "Custom")])]),
        one(&[Part("ApplicationProfile", &[("custom", "Custom")])]),
    ] },
    Concept { id: "c-states", title: "core idle states that the firmware offers", forms: &[
        one(&[Part("ProcCStates", &[("on", "Enabled"), ("off", "Disabled"), ("autonomous", "Autonomous")])]),
        one(&[Part("MinProcIdlePower", &[("on", "C6"), ("off", "NoCStates"), ("c1e", "C1E")])]),
        one(&[Part("Processors_CStates", &[("on", "Legacy"), ("off", "Disabled"), ("autonomous", "Autonomous")])]),
        one(&[Part("Processors_GlobalC_stateControl", ON_OFF)]),
        one(&[Part("GlobalC_stateControl", &[("on", "Enabled"), ("off", "Disabled"), ("auto", "Auto")])]),
        one(&[Part("CPUC6Report", &[("on", "Enable"), ("off", "Disable"), ("auto", "Auto")]), Part("EnhancedHaltState_C1E_", &[("off", "Disable")])]),
        one(&[Part("CbsCmnCpuGlobalCstateCtrl", &[("on", "Enabled"), ("off", "Disabled"), ("auto", "Auto")])]),
        one(&[Part("ProcessorCState", ON_OFF)]),
        one(&[Part("C6Enable", ON_OFF), Part("ProcessorC1eEnable", &[("off", "Disabled")])]),
        one(&[Part("PMS005", ON_OFF), Part("PMS006", &[("off", "Disable")])]),
        one(&[Part("=CPU C6 report", ON_OFF)]),
        one(&[Part("=Global C-state Control", ON_OFF)]),
    ] },
    Concept { id: "c1e", title: "enhanced C1", forms: &[
        one(&[Part("ProcC1E", ON_OFF)]), one(&[Part("Processors_C1EnhancedMode", ON_OFF)]), one(&[Part("EnhancedHaltState_C1E_", ON_OFF)]),
        one(&[Part("ProcessorC1eEnable", ON_OFF)]), one(&[Part("ProcessorC1E", ON_OFF)]), one(&[Part("PMS006", ON_OFF)]),
        one(&[Part("=Enhanced Halt State (C1E)", ON_OFF)]),
    ] },
    Concept { id: "package-c-states", title: "deepest idle state of a package", forms: &[
        one(&[Part("MinProcIdlePkgState", &[("on", "C6Retention"), ("off", "NoState")])]),
        one(&[Part("PackageCState", &[("auto", "Auto"), ("on", "No Limit"), ("on", "Auto"), ("off", "C0/C1 state"), ("c2", "C2 state"), ("c6", "C6(Retention) state")])]),
        one(&[Part("PMS007", &[("on", "No Limit"), ("on", "Auto"), ("off", "C0/C1 state")])]),
        one(&[Part("PackageCStates", ON_OFF)]),
        one(&[Part("=Package C State", &[("on", "No Limit"), ("on", "Auto"), ("off", "C0/C1 state")])]),
    ] },
    Concept { id: "monitor-mwait", title: "MONITOR/MWAIT, which idle drivers need", forms: &[
        one(&[Part("MonitorMwait", ON_OFF)]), one(&[Part("Processors_MONITORMWAIT", ON_OFF)]), one(&[Part("EnableMonitorMWAIT", ON_OFF)]),
        one(&[Part("MonitorandMWAITDisable", &[("on", "Disabled"), ("off", "Enabled"), ("auto", "Auto")])]),
    ] },
    Concept { id: "p-states", title: "who chooses the clock", forms: &[
        one(&[Part("ProcPwrPerf", &[("os", "OsDbpm"), ("performance", "MaxPerf"), ("firmware", "SysDbpm")])]),
        one(&[Part("PowerRegulator", &[("os", "OsControl"), ("performance", "StaticHighPerf"), ("firmware", "DynamicPowerSavings"), ("power", "StaticLowPower")])]),
        one(&[Part("Processors_CPUPstateControl", &[("os", "Legacy"), ("firmware", "Autonomous"), ("off", "None")])]),
        one(&[Part("SpeedStep_P_States_", &[("os", "Enable"), ("off", "Disable")])]),
        one(&[Part("ProcessorEistEnable", &[("os", "Enabled"), ("off", "Disabled")])]),
        one(&[Part("PMS001", &[("os", "Enable"), ("off", "Disable")])]),
    ] },
    Concept { id: "hw-p-states", title: "clocks chosen by hardware (HWP, CPPC)", forms: &[
        one(&[Part("HardwareP_States", &[("off", "Disable"), ("native", "Native Mode"), ("out-of-band", "Out of Band Mode")])]),
        one(&[Part("Processors_CPPC", ON_OFF)]), one(&[Part("CPPC", AUTO_OFF)]),
        one(&[Part("ProcessorHWPMEnable", &[("off", "Disabled"), ("native", "HWPM NATIVE MODE"), ("out-of-band", "HWPM OOB MODE")])]),
    ] },
    Concept { id: "pcc", title: "firmware as a partner in choosing clocks (PCC)", forms: &[
        one(&[Part("CollabPowerControl", ON_OFF)]), one(&[Part("CollaborativeCpuPerfCtrl", ON_OFF)]),
    ] },
    Concept { id: "turbo", title: "clocks above the base clock", forms: &[
        one(&[Part("ProcTurboMode", ON_OFF)]), one(&[Part("ProcTurbo", ON_OFF)]), one(&[Part("ProcAMDBoost", ON_OFF)]),
        one(&[Part("Processors_TurboMode", ON_OFF)]), one(&[Part("TurboMode", ON_OFF)]),
        one(&[Part("Processors_CorePerformanceBoost", ON_OFF)]), one(&[Part("CorePerformanceBoost", AUTO_OFF)]),
        one(&[Part("CbsCmnCpuCpb", AUTO_OFF)]), one(&[Part("PMS002", ON_OFF)]), one(&[Part("=Turbo Mode", ON_OFF)]),
    ] },
    Concept { id: "efficient-turbo", title: "energy-efficient turbo", forms: &[
        one(&[Part("EnergyEfficientTurbo", ON_OFF)]), one(&[Part("Processors_EnergyEfficientTurbo", ON_OFF)]),
        one(&[Part("EETurboDisable", &[("on", "Disabled"), ("off", "Enabled")])]), one(&[Part("PMS01A", ON_OFF)]),
    ] },
    Concept { id: "epb", title: "energy performance bias", forms: &[
        one(&[Part("EnergyPerformanceBias", &[("performance", "MaxPower"), ("balanced", "BalancedPerformance"), ("efficiency", "BalancedEfficiency"), ("power", "LowPower")])]),
        one(&[Part("EnergyPerfBias", &[("performance", "MaxPerf"), ("balanced", "BalancedPerf"), ("efficiency", "BalancedPower"), ("power", "PowerSavingsMode")])]),
        one(&[Part("Power_PlatformControlledType", &[("performance", "MaximumPerformance"), ("balanced", "Efficiency_FavorPerformance"), ("efficiency", "Efficiency_FavorPower"), ("power", "MinimalPower")])]),
        one(&[Part("ENERGY_PERF_BIAS_CFGMode", BIAS)]), one(&[Part("AltEngPerfBIAS", BIAS)]), one(&[Part("PMS00A", BIAS)]),
    ] },
    Concept { id: "epb-owner", title: "who sets the bias", forms: &[
        one(&[Part("PowerPerformanceTuning", &[("os", "OS Controls EPB"), ("firmware", "BIOS Controls EPB")])]),
        one(&[Part("Power_PowerPerformanceBias", &[("os", "OSControlled"), ("firmware", "PlatformControlled")])]),
        one(&[Part("PwrPerfTuning", &[("os", "OS Controls EPB"), ("firmware", "BIOS Controls EPB")])]),
    ] },
    Concept { id: "uncore", title: "clock of mesh, fabric and cache", forms: &[
        one(&[Part("UncoreFrequency", &[("max", "MaxUFS"), ("dynamic", "DynamicUFS")])]),
        one(&[Part("UncoreFreqScaling", &[("max", "Maximum"), ("dynamic", "Auto"), ("min", "Minimum")])]),
        one(&[Part("Processors_UncoreFrequencyScaling", &[("max", "Disabled"), ("dynamic", "Enabled")])]),
        one(&[Part("PMS014", &[("max", "Disabled"), ("dynamic", "Enabled")])]),
        one(&[Part("InfinityFabricPstate", &[("max", "P0"), ("dynamic", "Auto")])]),
        one(&[Part("Processors_SOCP_states", &[("max", "P0"), ("dynamic", "Auto")])]),
        one(&[Part("ApbDis", &[("max", "Enabled"), ("dynamic", "Disabled")]), Part("FixedSocPstate", &[("max", "FixedSocPstate0")])]),
        one(&[Part("APBDIS", &[("max", "1"), ("dynamic", "Auto")])]),
    ] },
    Concept { id: "link-power", title: "power saving of the links between sockets", forms: &[
        one(&[Part("CpuInterconnectBusLinkPower", ON_OFF)]), one(&[Part("IntelUpiPowerManagement", ON_OFF)]), one(&[Part("IntelQpiPowerManagement", ON_OFF)]),
        one(&[Part("Processors_L1", ON_OFF), Part("Processors_L0p", ON_OFF)]), one(&[Part("LinkL1Enable", ON_OFF), Part("LinkL0pEnable", ON_OFF)]),
    ] },
    Concept { id: "df-c-states", title: "idle states of AMD's data fabric", forms: &[
        one(&[Part("DfCState", ON_OFF)]), one(&[Part("DataFabricCStateEnable", AUTO_OFF)]), one(&[Part("Processors_DFC_States", ON_OFF)]),
        one(&[Part("DFCstates", AUTO_OFF)]), one(&[Part("CbsCmnGnbSmuDfCstatesRs", AUTO_OFF)]), one(&[Part("CbsCmnGnbSMUDfCstates", AUTO_OFF)]),
    ] },
    Concept { id: "memory-frequency", title: "memory clock", forms: &[
        one(&[Part("MemFrequency", &[("max", "MaxPerf")])]), one(&[Part("MaxMemBusFreqMHz", &[("max", "Auto")])]),
        one(&[Part("Memory_MemorySpeed", &[("max", "MaximumPerformance"), ("max", "Maximum"), ("balanced", "Balanced"), ("power", "MinimalPower")])]),
        one(&[Part("MemoryFrequency", &[("max", "Auto")])]),
    ] },
    Concept { id: "smt", title: "two threads per core", forms: &[
        one(&[Part("LogicalProc", ON_OFF)]), one(&[Part("ProcHyperthreading", ON_OFF)]), one(&[Part("ProcSMT", ON_OFF)]),
        one(&[Part("Processors_HyperThreading", ON_OFF)]), one(&[Part("Processors_SMTMode", &[("on", "Enabled"), ("on", "Auto"), ("off", "Disabled")])]),
        one(&[Part("Hyper_Threading_ALL_", ON_OFF)]), one(&[Part("SMTControl", &[("on", "Enable"), ("on", "Auto"), ("off", "Disable")])]),
        one(&[Part("ProcessorHyperThreadingDisable", ON_OFF)]), one(&[Part("IntelHyperThread", ON_OFF)]),
        one(&[Part("CbsCpuSmtCtrl", &[("on", "Enable"), ("on", "Auto"), ("off", "Disable")])]), one(&[Part("PRSS011", ON_OFF)]),
        one(&[Part("=Hyper-Threading [ALL]", ON_OFF)]), one(&[Part("=Hyper-Threading", ON_OFF)]),
    ] },
    Concept { id: "numa", title: "memory nodes per socket (SNC, NPS)", forms: &[
        one(&[Part("SubNumaCluster", &[("off", "Disabled"), ("snc2", "2-Way"), ("snc4", "4-Way")])]),
        one(&[Part("SubNumaClustering", &[("off", "Disabled"), ("snc2", "EnableSnc2"), ("snc2", "Enabled"), ("snc4", "EnableSnc4")])]),
        one(&[Part("Processors_SNC", &[("off", "Disabled"), ("snc2", "SNC2"), ("snc2", "Enabled"), ("snc4", "SNC4")])]),
        one(&[Part("SNC", &[("off", "Disable"), ("snc2", "Enable SNC2 (2-clusters)"), ("snc4", "Enable SNC4 (4-clusters)"), ("auto", "Auto")])]),
        one(&[Part("NumaNodesPerSocket", &[("off", "1"), ("nps1", "1"), ("nps2", "2"), ("nps4", "4"), ("off", "NPS1"), ("nps1", "NPS1"), ("nps2", "NPS2"), ("nps4", "NPS4"), ("auto", "Auto")])]),
        one(&[Part("NumaMemoryDomainsPerSocket", &[("off", "OneMemoryDomainPerSocket"), ("nps1", "OneMemoryDomainPerSocket"), ("nps2", "TwoMemoryDomainsPerSocket"), ("nps4", "FourMemoryDomainsPerSocket"), ("auto", "Auto")])]),
        one(&[Part("Memory_NUMANodesperSocket", NPS)]), one(&[Part("CbsDfCmnDramNps", NPS)]),
        one(&[Part("SncEn", &[("off", "Disabled"), ("snc2", "Enabled")])]),
        one(&[Part("QpiSnoopConfig", &[("off", "Standard"), ("snc2", "ClusterOnDie")])]),
    ] },
    Concept { id: "node-interleave", title: "all memory as one node", forms: &[
        one(&[Part("NodeInterleave", ON_OFF)]), one(&[Part("NodeInterleaving", ON_OFF)]),
        one(&[Part("Memory_SocketInterleave", &[("on", "Non_NUMA"), ("off", "NUMA")])]),
        one(&[Part("NUMA", &[("on", "Disabled"), ("off", "Enabled")])]), one(&[Part("NumaEn", &[("on", "Disabled"), ("off", "Enabled")])]),
    ] },
    Concept { id: "determinism", title: "AMD: alike or as fast as each can", forms: &[
        one(&[Part("DeterminismSlider", &[("performance", "PerfDeterminism"), ("performance", "PerformanceDeterminism"), ("power", "PowerDeterminism")])]),
        one(&[Part("PerformanceDeterminism", &[("performance", "PerformanceDeterministic"), ("power", "PowerDeterministic")]), Part("DeterminismControl", &[("performance", "DeterminismCtrlManual"), ("power", "DeterminismCtrlManual")])]),
        one(&[Part("Processors_DeterminismSlider", &[("performance", "Performance"), ("power", "Power")])]),
        one(&[Part("DeterminismEnable", &[("performance", "Performance"), ("power", "Power")]), Part("DeterminismControl", &[("performance", "Manual"), ("power", "Manual")])]),
        one(&[Part("CbsCmnDeterminismEnable", &[("performance", "Performance"), ("power", "Power")])]),
        one(&[Part("CbsCmnDeterminismSlider", &[("performance", "Performance"), ("power", "Power"), ("auto", "Auto")])]),
    ] },
    Concept { id: "aspm", title: "power saving of PCIe links", forms: &[
        one(&[Part("PcieAspmL1", ON_OFF)]), one(&[Part("PcieGlobalAspm", ON_OFF)]), one(&[Part("Power_ASPM", AUTO_OFF)]),
        one(&[Part("PCIeASPMSupport_Global_", AUTO_OFF)]), one(&[Part("ASPMSupport", AUTO_OFF)]), one(&[Part("PcieAspmControl", ON_OFF)]),
    ] },
    Concept { id: "prefetchers", title: "all hardware prefetchers", forms: &[Form::Every(ALL_PREFETCHERS)] },
    Concept { id: "prefetcher-stream", title: "prefetcher of L2, by streams", forms: &[
        one(&[Part("ProcHwPrefetcher", ON_OFF)]), one(&[Part("HwPrefetcher", ON_OFF)]), one(&[Part("Processors_HardwarePrefetcher", ON_OFF)]),
        one(&[Part("HardwarePrefetcher", ON_OFF)]), one(&[Part("MlcStreamerPrefetcherEnable", ON_OFF)]), one(&[Part("L2StreamHwPrefetcher", ON_OFF)]),
        one(&[Part("AmdL2Prefetcher", ON_OFF)]),
    ] },
    Concept { id: "prefetcher-adjacent", title: "prefetcher of L2, the adjacent line", forms: &[
        one(&[Part("ProcAdjCacheLine", ON_OFF)]), one(&[Part("AdjSecPrefetch", ON_OFF)]), one(&[Part("Processors_AdjacentCachePrefetch", ON_OFF)]),
        one(&[Part("AdjacentCachePrefetch", ON_OFF)]), one(&[Part("MlcSpatialPrefetcherEnable", ON_OFF)]),
    ] },
    Concept { id: "prefetcher-l1-stream", title: "prefetcher of L1, by streams", forms: &[
        one(&[Part("DcuStreamerPrefetcher", ON_OFF)]), one(&[Part("DcuStreamPrefetcher", ON_OFF)]), one(&[Part("Processors_DCUStreamerPrefetcher", ON_OFF)]),
        one(&[Part("L1StreamHwPrefetcher", ON_OFF)]), one(&[Part("AmdL1Prefetcher", ON_OFF)]),
    ] },
    Concept { id: "prefetcher-l1-ip", title: "prefetcher of L1, by instruction", forms: &[
        one(&[Part("DcuIpPrefetcher", ON_OFF)]), one(&[Part("Processors_DCUIPPrefetcher", ON_OFF)]), one(&[Part("L1StridePrefetcher", ON_OFF)]),
    ] },
    Concept { id: "prefetcher-llc", title: "prefetcher of the last level of cache", forms: &[
        one(&[Part("LlcPrefetch", ON_OFF)]), one(&[Part("Processors_LLCPrefetch", ON_OFF)]), one(&[Part("LlcPrefetchEnable", ON_OFF)]),
    ] },
    Concept { id: "cooling", title: "fans, where the firmware decides", forms: &[
        one(&[Part("ThermalConfig", &[("optimal", "OptimalCooling"), ("increased", "IncreasedCooling"), ("max", "MaxCooling")])]),
    ] },
];

/// Every switch of a prefetcher that any maker has: what is off in some of them only is not off.
#[rustfmt::skip]
const ALL_PREFETCHERS: &[Part] = &[
    Part("ProcHwPrefetcher", ON_OFF), Part("HwPrefetcher", ON_OFF), Part("Processors_HardwarePrefetcher", ON_OFF), Part("HardwarePrefetcher", ON_OFF),
    Part("MlcStreamerPrefetcherEnable", ON_OFF), Part("L1StreamHwPrefetcher", ON_OFF), Part("L2StreamHwPrefetcher", ON_OFF),
    Part("AmdL1Prefetcher", ON_OFF), Part("AmdL2Prefetcher", ON_OFF),
    Part("ProcAdjCacheLine", ON_OFF), Part("AdjSecPrefetch", ON_OFF), Part("Processors_AdjacentCachePrefetch", ON_OFF), Part("AdjacentCachePrefetch", ON_OFF),
    Part("MlcSpatialPrefetcherEnable", ON_OFF),
    Part("DcuStreamerPrefetcher", ON_OFF), Part("DcuStreamPrefetcher", ON_OFF), Part("Processors_DCUStreamerPrefetcher", ON_OFF),
    Part("DcuIpPrefetcher", ON_OFF), Part("Processors_DCUIPPrefetcher", ON_OFF),
    Part("L1StridePrefetcher", ON_OFF), Part("L1RegionPrefetcher", ON_OFF), Part("L2UpDownPrefetcher", ON_OFF),
    Part("LlcPrefetch", ON_OFF), Part("Processors_LLCPrefetch", ON_OFF), Part("LlcPrefetchEnable", ON_OFF),
    Part("XptPrefetch", ON_AUTO), Part("XptPrefetcher", ON_AUTO), Part("Processors_XPTPrefetcher", ON_AUTO), Part("XPTRemotePrefetch", ON_AUTO),
    Part("UpiPrefetch", ON_AUTO), Part("UpiPrefetcher", ON_AUTO), Part("Processors_UPIPrefetcher", ON_AUTO), Part("KTIPrefetch", ON_AUTO),
    Part("Processors_L2RFOPrefetcher", ON_AUTO),
];

/// Lenovo's settings that the operating mode decides in any mode but CustomMode; the machine drops other values at boot.
const LENOVO_BY_MODE: &[&str] = &[
    "Power_PowerPerformanceBias",
    "Power_PlatformControlledType",
    "Processors_CStates",
    "Processors_C1EnhancedMode",
    "Processors_MONITORMWAIT",
    "Processors_CPUPstateControl",
    "Processors_TurboMode",
    "Processors_EnergyEfficientTurbo",
    "Processors_UPILinkFrequency",
    "Processors_L1",
    "Processors_L0p",
    "Memory_MemorySpeed",
    "Memory_MemoryPowerManagement",
    // AMD.
    "Processors_GlobalC_stateControl",
    "Processors_DFC_States",
    "Processors_P_state1",
    "Processors_P_state2",
    "Processors_CorePerformanceBoost",
    "Processors_SOCP_states",
    "Processors_DeterminismSlider",
    "Processors_cTDP",
    "Processors_PackagePowerLimit",
];

/// Switches without which a value has no force, where registries leave the dependency out. From makers' guides and help texts; the live
/// registry must have both.
pub const MASTERS: &[Master] = &[
    // The fabric stays in a P-state only while its power management (APBDIS) is off.
    Master { of: &["InfinityFabricPstate"], without: &["Auto"], switch: "ApplicationPowerBoost", needs: &["Disabled"] },
    Master { of: &["FixedSocPstate"], without: &["Auto"], switch: "ApbDis", needs: &["Enabled"] },
    // Else the operating system writes the bias.
    Master { of: &["AltEngPerfBIAS"], without: &[], switch: "PwrPerfTuning", needs: &["BIOS Controls EPB"] },
    Master {
        of: &["ENERGY_PERF_BIAS_CFGMode"],
        without: &[],
        switch: "PowerPerformanceTuning",
        needs: &["BIOS Controls EPB"],
    },
    Master {
        of: &["Power_PlatformControlledType"],
        without: &[],
        switch: "Power_PowerPerformanceBias",
        needs: &["PlatformControlled"],
    },
    Master {
        of: &["PerformanceDeterminism"],
        without: &[],
        switch: "DeterminismControl",
        needs: &["DeterminismCtrlManual", "Manual"],
    },
    Master {
        of: &["DeterminismEnable"],
        without: &["Auto"],
        switch: "DeterminismControl",
        needs: &["Manual", "DeterminismCtrlManual"],
    },
    Master { of: LENOVO_BY_MODE, without: &[], switch: "OperatingModes_ChooseOperatingMode", needs: &["CustomMode"] },
    // Autonomous C-states are the package's own: it takes no word about C1E, and gives none about Monitor/Mwait.
    Master {
        of: &["Processors_C1EnhancedMode"],
        without: &[],
        switch: "Processors_CStates",
        needs: &["Legacy", "Disabled"],
    },
    Master { of: &["Processors_MONITORMWAIT"], without: &[], switch: "Processors_CStates", needs: &["Disabled"] },
    Master {
        of: &["Processors_EnergyEfficientTurbo"],
        without: &[],
        switch: "Processors_TurboMode",
        needs: &["Enabled", "Enable"],
    },
];
