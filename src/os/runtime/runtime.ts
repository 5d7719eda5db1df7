import type { Area } from '../area.ts'
import { dmesg } from './api/dmesg.ts'
import { eventsMethod } from './api/events.ts'
import { controllerDependencies } from './api/inspect.ts'
import { logMethods } from './api/logs.ts'
import { memory } from './api/memory.ts'
import { mounts } from './api/mounts.ts'
import { processes } from './api/processes.ts'
import { serviceMethods } from './api/services.ts'
import { systemMethods } from './api/system.ts'
import { version } from './api/version.ts'
import { configApiService, configMaintenance } from './controllers/api-service.ts'
import { reportStatus } from './controllers/console-status.ts'
import { observeDevicesReady } from './controllers/devices.ts'
import { configEnvironment } from './controllers/environment.ts'
import { applyExtensionServices, configExtensionServices, observeExtensionServices } from './controllers/extension-service.ts'
import { observeExtensions } from './controllers/extension-status.ts'
import { observeKernelCmdline } from './controllers/kernel-cmdline.ts'
import { applyKernelModules, configKernelModules, observeKernelModules } from './controllers/kernel-module.ts'
import { applyKernelParams, configKernelParams, defaultKernelParams } from './controllers/kernel-param.ts'
import { persistLogs } from './controllers/log-persistence.ts'
import { observeMachineStatus } from './controllers/machine-status.ts'
import { reportMaintenance } from './controllers/maintenance.ts'
import { observeMountStatus } from './controllers/mount-status.ts'
import { handleOutOfMemory } from './controllers/oom.ts'
import { observeSbom } from './controllers/sbom-item.ts'
import { observeSecurityState } from './controllers/security-state.ts'
import { observeServices } from './controllers/service.ts'
import { observeServicePids } from './controllers/service-pid.ts'
import { observeMachineToken } from './controllers/unique-machine-token.ts'
import { observeVersion } from './controllers/version.ts'
import { applyWatchdog, configWatchdog } from './controllers/watchdog.ts'
import { loadExtensionServices } from './extensions/load.ts'
import { extensionService } from './extensions/service.ts'
import { ServiceStarts } from './extensions/starts.ts'
import { resources } from './resource-types.ts'
import { apidService } from './services/apid.ts'
import { auditdService } from './services/auditd.ts'
import { dashboardService } from './services/dashboard.ts'
import { machinedService } from './services/machined.ts'
import { syslogdService } from './services/syslogd.ts'
import { udevdService } from './services/udevd.ts'

/** The running machine: services, events, status. */
export const runtime: Area = {
  name: 'runtime',
  resources,
  parts(machine) {
    const starts = new ServiceStarts()
    const extensionServices = loadExtensionServices(machine.kernel, machine.log)
    return {
      controllers: [
        observeVersion(machine),
        observeDevicesReady(machine.kernel),
        observeSecurityState(machine.kernel),
        observeServices(machine),
        observeServicePids(machine),
        observeMountStatus,
        persistLogs(machine),
        observeSbom(machine.kernel),
        observeExtensions(machine.kernel),
        configExtensionServices,
        applyExtensionServices(machine, starts),
        observeExtensionServices(extensionServices.map(({ name }) => name)),
        configEnvironment(machine.kernel.mode === 'container' ? '' : machine.kernel.files.readText('/proc/cmdline')),
        configMaintenance,
        configApiService,
        observeMachineStatus(machine),
        observeMachineToken(machine.kernel),
        defaultKernelParams(machine.kernel),
        configKernelParams,
        applyKernelParams(machine.kernel),
        ...(machine.kernel.mode === 'container'
          ? []
          : [
              observeKernelCmdline(machine.kernel),
              configKernelModules,
              applyKernelModules(machine.kernel),
              observeKernelModules(machine.kernel),
              configWatchdog,
              applyWatchdog(machine.kernel),
              handleOutOfMemory(machine.kernel),
            ]),
        reportMaintenance(),
        reportStatus(machine.problem),
      ],
      services: [
        machinedService(),
        apidService(machine),
        ...extensionServices.map((service) => extensionService(machine, service, starts)),
        ...(machine.kernel.mode === 'container'
          ? []
          : [udevdService(machine), auditdService(machine), syslogdService(machine), dashboardService(machine)]),
      ],
      methods: [
        version(machine),
        eventsMethod(machine),
        dmesg(machine.kernel),
        ...serviceMethods(machine),
        ...logMethods(machine),
        memory(machine.kernel),
        mounts(machine.kernel),
        processes(machine.kernel),
        ...systemMethods(machine.kernel),
        controllerDependencies(machine),
      ],
    }
  },
}
