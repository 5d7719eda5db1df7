import { APIServiceConfig } from './resources/api-service-config.ts'
import { BootedEntry } from './resources/booted-entry.ts'
import { DevicesStatus } from './resources/devices-status.ts'
import { Diagnostic } from './resources/diagnostic.ts'
import { Environment } from './resources/environment.ts'
import { ExtensionServiceConfig, ExtensionServiceConfigStatus } from './resources/extension-service-config.ts'
import { ExtensionStatus } from './resources/extension-status.ts'
import { KernelCmdline } from './resources/kernel-cmdline.ts'
import { KernelModuleSpec, LoadedKernelModule } from './resources/kernel-module.ts'
import { KernelParamDefaultSpec, KernelParamSpec, KernelParamStatus } from './resources/kernel-param.ts'
import { MachineResetSignal } from './resources/machine-reset-signal.ts'
import { MachineStatus } from './resources/machine-status.ts'
import { MaintenanceServiceConfig, MaintenanceServiceRequest } from './resources/maintenance-service.ts'
import { MetaKey, MetaLoad } from './resources/meta.ts'
import { RuntimeMountStatus } from './resources/mount-status.ts'
import { OOMAction } from './resources/oom-action.ts'
import { PlatformMetadata } from './resources/platform-metadata.ts'
import { SBOMItem } from './resources/sbom-item.ts'
import { SecurityState } from './resources/security-state.ts'
import { Service, ServicePID } from './resources/service.ts'
import { UniqueMachineToken } from './resources/unique-machine-token.ts'
import { Version } from './resources/version.ts'
import { WatchdogTimerConfig, WatchdogTimerStatus } from './resources/watchdog-timer.ts'

/** The kinds of resources of this area. */
export const resources = [
  APIServiceConfig,
  BootedEntry,
  DevicesStatus,
  Diagnostic,
  Environment,
  ExtensionServiceConfigStatus,
  ExtensionServiceConfig,
  ExtensionStatus,
  KernelCmdline,
  KernelModuleSpec,
  KernelParamDefaultSpec,
  KernelParamSpec,
  KernelParamStatus,
  LoadedKernelModule,
  MachineResetSignal,
  MachineStatus,
  MaintenanceServiceConfig,
  MaintenanceServiceRequest,
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
