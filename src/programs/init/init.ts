/**
 * PID 1: makes the machine's folders, reaps orphans, hands the kernel to every area, opens the sockets that the
 * daemons use and then runs sequences; everything else is controllers and services.
 */
import { describe } from '../../cosi/meta.ts'
import { Runtime } from '../../cosi/runtime.ts'
import { Store } from '../../cosi/store.ts'
import * as acpi from '../../linux/acpi.ts'
import * as block from '../../linux/block.ts'
import * as capabilities from '../../linux/capabilities.ts'
import * as capture from '../../linux/capture.ts'
import * as cgroup from '../../linux/cgroup.ts'
import * as screens from '../../linux/console.ts'
import * as efi from '../../linux/efi-variables.ts'
import * as ethtool from '../../linux/ethtool.ts'
import * as fifo from '../../linux/fifo.ts'
import * as files from '../../linux/files.ts'
import * as kmsg from '../../linux/kmsg.ts'
import * as modules from '../../linux/modules.ts'
import * as mount from '../../linux/mount.ts'
import * as net from '../../linux/net.ts'
import * as nftables from '../../linux/nftables.ts'
import * as packet from '../../linux/packet.ts'
import * as processes from '../../linux/process.ts'
import * as rebooting from '../../linux/reboot.ts'
import { setrlimit } from '../../linux/rlimit.ts'
import * as socket from '../../linux/socket.ts'
import * as sysctl from '../../linux/sysctl.ts'
import * as time from '../../linux/time.ts'
import * as uevent from '../../linux/uevent.ts'
import * as uts from '../../linux/uts.ts'
import * as watchdog from '../../linux/watchdog.ts'
import * as wireguard from '../../linux/wireguard.ts'
import * as xattr from '../../linux/xattr.ts'
import type { Ending, Machine } from '../../os/area.ts'
import { Meta } from '../../os/block/meta/meta.ts'
import type { Kernel } from '../../os/kernel.ts'
import { boot } from '../../os/lifecycle/boot.ts'
import { install, withdrawConfig } from '../../os/lifecycle/first-install.ts'
import { initialize, loadConfig } from '../../os/lifecycle/initialize.ts'
import { PhaseLog } from '../../os/lifecycle/phase-log.ts'
import { Sequencer, TakenOver } from '../../os/lifecycle/sequencer.ts'
import { isInstalled } from '../../os/lifecycle/slots/boot-disk.ts'
import { reboot, shutdown } from '../../os/lifecycle/stop.ts'
import { namespaces } from '../../os/namespaces.ts'
import { auditFile } from '../../os/runtime/audit/audit-file.ts'
import { AuditLog } from '../../os/runtime/audit/audit-log.ts'
import { Calls } from '../../os/runtime/calls.ts'
import { Events } from '../../os/runtime/events.ts'
import { LastProblem } from '../../os/runtime/last-problem.ts'
import { isVerbose } from '../../os/runtime/verbosity.ts'
import { release } from '../../release.ts'
import { spawn } from '../../supervise/spawn.ts'
import { Supervisor } from '../../supervise/supervisor.ts'
import { areas } from './areas.ts'
import { prepareCgroups } from './cgroups.ts'
import { consoleLogger, controllersLogger, say, sayToKernel } from './console.ts'
import { prepareFilesystems } from './filesystems.ts'
import { keepReaping } from './reaper.ts'
import { openSockets } from './sockets.ts'

/** Open files each process of a machine may have; a container's limits are its host's. */
const openFiles = 1 << 20

/** Runs the machine. Ends only by `end`, or by dying, which is said on the console. */
export async function main(_args: string[]): Promise<number> {
  const container = process.env.PLATFORM === 'container' || process.env.container !== undefined
  if (process.pid !== 1) {
    say('init runs the machine as PID 1; to run a command, call this binary as talosctl')
    return 64
  }
  process.on('uncaughtException', (error) => die('uncaught exception', error, container))
  process.on('unhandledRejection', (error) => die('unhandled rejection', error, container))
  prepareFilesystems(container)
  if (!container) {
    sayToKernel()
    setrlimit('nofile', { soft: openFiles, hard: openFiles })
  }
  say(`${release.name} ${release.tag} (${release.sha})`)
  keepReaping()
  const machine = assemble(container)
  for (const missing of prepareCgroups()) machine.log.warn('cgroup limit has no place on this kernel', { limit: missing })
  await openSockets(machine, areas)
  machine.runtime.start()
  process.on(
    'SIGTERM',
    () => void machine.sequencer.run('shutdown', shutdown(machine, { force: true })).catch(() => machine.end('shutdown')),
  )
  await start(machine)
  await new Promise(() => {})
  return 0
}

/** A start that fails is told and tried from the beginning; one that is taken over leaves the machine to the other sequence. */
async function start(machine: Machine): Promise<void> {
  const { sequencer, log } = machine
  try {
    await sequencer.run('initialize', initialize(machine))
    while (machine.kernel.mode !== 'container' && !isInstalled(machine)) if (await installed(machine)) return
    await sequencer.run('boot', boot(machine))
  } catch (error) {
    if (error instanceof TakenOver) return
    log.error('the machine did not start, it begins anew', { error })
    await sequencer.run('reboot', reboot(machine))
  }
}

/** Installs, which ends in a reboot. Where it could not even begin the machine is in maintenance again: another configuration may be right. */
async function installed(machine: Machine): Promise<boolean> {
  try {
    await machine.sequencer.run('install', install(machine))
    return true
  } catch (error) {
    if (error instanceof TakenOver || isInstalled(machine)) throw error
    machine.log.error('the machine was not installed, send a configuration that fits it', { error })
    await withdrawConfig(machine)
    await machine.sequencer.run('initialize', [{ name: 'config', tasks: [loadConfig(machine)] }])
    return false
  }
}

function assemble(container: boolean): Machine {
  const store = new Store()
  const floor = oomFloor()
  const supervisor = new Supervisor({ store, oomFloor: floor })
  const problem = new LastProblem()
  const log = consoleLogger(supervisor.logs.open('machined'), problem, () => isVerbose(store))
  supervisor.subscribe(({ id, state, message }) => log.info('service', { service: id, state, message }))
  const runtime = new Runtime(store, { log: controllersLogger(supervisor.logs.open('controller-runtime'), log) })
  const events = new Events()
  const kernel: Kernel = {
    mode: container ? 'container' : 'metal',
    files,
    xattr,
    modules,
    block,
    uevent,
    mount,
    uts,
    net,
    packet,
    capture,
    ethtool,
    wireguard,
    nftables,
    process: processes,
    cgroup,
    sysctl,
    kmsg,
    time,
    capabilities,
    fifo,
    efi,
    reboot: rebooting,
    socket,
    acpi,
    console: screens,
    watchdog,
  }
  const services = new Map<string, ReturnType<Machine['service']>>()
  const machine: Machine = {
    kernel,
    store,
    runtime,
    log,
    supervisor,
    oomFloor: floor,
    problem,
    spawn,
    events,
    sequencer: new Sequencer(events, log, phaseLog(container)),
    meta: new Meta({ kernel, store, log }),
    calls: new Calls(auditLog(kernel, supervisor, log)),
    service(id) {
      const definition = services.get(id)
      if (!definition) throw new Error(`service "${id}" is not registered`)
      return definition
    },
    version: release,
    end: (ending) => endMachine(ending, container),
  }
  describe(
    store,
    areas.flatMap(({ resources }) => resources),
    namespaces,
  )
  for (const area of areas) {
    runtime.register(...(area.controllers?.(machine) ?? []))
    for (const definition of area.services?.(machine) ?? []) services.set(definition.id, definition)
  }
  return machine
}

/** Phases with their times: since power-on, or since this container started. */
function phaseLog(container: boolean): PhaseLog {
  if (container) return new PhaseLog()
  const phases = new PhaseLog(() => Number(time.clock('boottime') / 1000n) / 1000)
  // What came before init: firmware and boot loader have no clock of ours, the kernel's begins at its own start.
  phases.before('start', 'kernel', ['kernel', 'stage0', 'runtime'])
  return phases
}

/** The audit log: in memory for `logs`, and on the disk once there is one. */
function auditLog(kernel: Kernel, { logs }: Supervisor, log: Machine['log']): AuditLog {
  const ring = logs.open('audit')
  const file = auditFile(kernel, (error) => log.warn('audit log is kept in memory only', { error }))
  return new AuditLog({
    write(lines) {
      ring.write(lines)
      file(lines)
    },
  })
}

/** The lowest OOM score that may be given: without CAP_SYS_RESOURCE nobody gets below init's own. */
function oomFloor(): number {
  return capabilities.capabilities().effective.includes('sys_resource') ? -1000 : Number(files.readText('/proc/self/oom_score_adj'))
}

/** In a container the exit code tells the keeper: 0 stays down, anything else starts again. */
function endMachine(ending: Ending, container: boolean): void {
  say(ending === 'reboot' ? 'rebooting' : 'shutting down')
  if (container) process.exit(ending === 'reboot' ? 129 : 0)
  files.syncAll()
  if (ending === 'shutdown') rebooting.reboot('powerOff')
  rebooting.reboot(files.readTextIfThere('/sys/kernel/kexec_loaded')?.trim() === '1' ? 'kexec' : 'restart')
}

function die(what: string, error: unknown, container: boolean): void {
  say(`init dies of an ${what}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`)
  if (container) process.exit(1)
  files.syncAll()
  rebooting.reboot('restart')
}
