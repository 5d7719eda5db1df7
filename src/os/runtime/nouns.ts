import { APICall } from './resources/api-call.ts'
import { APIServiceConfig } from './resources/api-service-config.ts'
import { BootedEntry } from './resources/booted-entry.ts'
import { CPUStat } from './resources/cpu-stat.ts'
import { DevicesStatus } from './resources/devices-status.ts'
import { Diagnostic } from './resources/diagnostic.ts'
import { Environment } from './resources/environment.ts'
import { EventSinkConfig } from './resources/event-sink-config.ts'
import { ExtensionServiceConfig } from './resources/extension-service-config.ts'
import { ExtensionServiceConfigStatus } from './resources/extension-service-config-status.ts'
import { ExtensionStatus } from './resources/extension-status.ts'
import { KernelCmdline } from './resources/kernel-cmdline.ts'
import { KernelModuleSpec } from './resources/kernel-module-spec.ts'
import { KernelParamDefaultSpec } from './resources/kernel-param-default-spec.ts'
import { KernelParamSpec } from './resources/kernel-param-spec.ts'
import { KernelParamStatus } from './resources/kernel-param-status.ts'
import { KmsgLogConfig } from './resources/kmsg-log-config.ts'
import { LoadedKernelModule } from './resources/loaded-kernel-module.ts'
import { MachineResetSignal } from './resources/machine-reset-signal.ts'
import { MachineStatus } from './resources/machine-status.ts'
import { MaintenanceServiceConfig } from './resources/maintenance-service-config.ts'
import { MaintenanceServiceRequest } from './resources/maintenance-service-request.ts'
import { MemoryStat } from './resources/memory-stat.ts'
import { MetaKey } from './resources/meta-key.ts'
import { MetaLoad } from './resources/meta-load.ts'
import { RuntimeMountStatus } from './resources/mount-status.ts'
import { OOMAction } from './resources/oom-action.ts'
import { PlatformMetadata } from './resources/platform-metadata.ts'
import { SBOMItem } from './resources/sbom-item.ts'
import { SecurityState } from './resources/security-state.ts'
import { Service } from './resources/service.ts'
import { ServicePID } from './resources/service-pid.ts'
import { UniqueMachineToken } from './resources/unique-machine-token.ts'
import { Version } from './resources/version.ts'
import { WatchdogTimerConfig } from './resources/watchdog-timer-config.ts'
import { WatchdogTimerStatus } from './resources/watchdog-timer-status.ts'

/** The kinds of resources of this area. */
export const resources = [
  APICall,
  APIServiceConfig,
  BootedEntry,
  CPUStat,
  DevicesStatus,
  Diagnostic,
  Environment,
  EventSinkConfig,
  ExtensionServiceConfigStatus,
  ExtensionServiceConfig,
  ExtensionStatus,
  KernelCmdline,
  KernelModuleSpec,
  KernelParamDefaultSpec,
  KernelParamSpec,
  KernelParamStatus,
  KmsgLogConfig,
  LoadedKernelModule,
  MachineResetSignal,
  MachineStatus,
  MaintenanceServiceConfig,
  MaintenanceServiceRequest,
  MemoryStat,
  MetaKey,
  MetaLoad,
  RuntimeMountStatus,
  OOMAction,
  PlatformMetadata,
  SBOMItem,
  SecurityState,
  ServicePID,
  Service,
  UniqueMachineToken,
  Version,
  WatchdogTimerConfig,
  WatchdogTimerStatus,
]
