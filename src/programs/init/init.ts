/**
 * PID 1: makes the machine's folders, reaps orphans, hands the kernel to every area, opens the sockets that the
 * daemons use and then runs sequences; everything else is controllers and services.
 */

import { background } from '../../cosi/background.ts'
import { silent } from '../../cosi/log.ts'
import { onUnexpected, takeUnexpected } from '../../cosi/unexpected.ts'
import * as files from '../../linux/fs/files.ts'
import * as capabilities from '../../linux/process/capabilities.ts'
import { setrlimit } from '../../linux/process/rlimit.ts'
import * as rebooting from '../../linux/system/reboot.ts'
import type { StopReason } from '../../os/area.ts'
import { complaintsAbout } from '../../os/lifecycle/kernel-parameters/complaints.ts'
import { haltsOnShutdown, staysOnFailure } from '../../os/lifecycle/kernel-parameters/endings.ts'
import { shutdown } from '../../os/lifecycle/stop.ts'
import { release } from '../../release.ts'
import { spawn } from '../../supervise/spawn.ts'
import { withRetries } from '../../timing/retry.ts'
import { parseCommandLine } from '../../wire/command-line.ts'
import { messageOf } from '../../wire/error-message.ts'
import { assemble } from './assemble.ts'
import { giveBootId } from './boot-id.ts'
import { prepareCgroups } from './cgroups.ts'
import { consoleLogger, say, sayToKernel } from './console.ts'
import { prepareFilesystems } from './filesystems.ts'
import { kernelOf } from './kernel.ts'
import { enterOwnCgroups } from './own-cgroups.ts'
import { keepReaping } from './reaper.ts'
import { openSockets } from './sockets.ts'
import { start } from './start.ts'
import { withUserWireguard } from './user-wireguard.ts'

/** Open files each process of a machine may have; a container's limits are its host's. */
const openFiles = 1 << 20

/** In images for container engines; its content does not matter. Pods and engines start them with an environment of their own. */
const containerMark = '/usr/etc/in-container'

/** Runs the machine. Ends only by `end`; `die` is for a start that got nowhere, and for errors without an end. */
export async function main(_args: string[]): Promise<number> {
  const { PLATFORM, container: engine } = process.env
  const container = PLATFORM === 'container' || engine !== undefined || files.exists(containerMark)
  if (process.pid !== 1) {
    say('init runs the machine as PID 1; to run a command, call this binary as talosctl')
    return 64
  }
  const commandLine = () => (container ? '' : (files.readTextIfThere('/proc/cmdline') ?? ''))
  const giveUp = (what: string, error: unknown) => die(what, error, container, staysOnFailure(commandLine()))
  // Until there is an API nobody could repair anything: an error starts the machine over.
  let unexpected = giveUp
  onUnexpected((what, error) => unexpected(what, error))
  if (container) enterOwnCgroups(process.env)
  await withRetries('prepare file systems', () => prepareFilesystems(container), sayProblem)
  if (!container) {
    sayToKernel()
    setrlimit('nofile', { soft: openFiles, hard: openFiles })
  }
  say(`${release.name} ${release.tag} (${release.sha})`)
  for (const complaint of complaintsAbout(parseCommandLine(commandLine()))) say(complaint)
  keepReaping()
  const make = () => {
    let log = silent
    return assemble({
      kernel: withUserWireguard(kernelOf(container ? 'container' : 'metal'), spawn, () => log),
      spawn,
      oomFloor: oomFloor(),
      logger(...given) {
        log = consoleLogger(...given)
        return log
      },
      end: (reason) => endMachine(reason, container, haltsOnShutdown(commandLine())),
    })
  }
  const machine = await withRetries('assemble', make, sayProblem)
  if (container) await giveBootId().catch((error) => machine.log.warn("boot id is the host's", { error }))
  for (const missing of await withRetries('prepare cgroups', prepareCgroups, sayProblem))
    machine.log.warn('cgroup limit has no place on this kernel', { limit: missing })
  await openSockets(machine)
  unexpected = takeUnexpected({ log: machine.log, giveUp })
  machine.runtime.start()
  process.on('SIGTERM', () =>
    background(
      () => machine.sequencer.run('shutdown', shutdown(machine, { force: true })).catch(() => machine.end('shutdown')),
      machine.log,
      'shutdown failed',
    ),
  )
  await start(machine)
  await new Promise(() => {})
  return 0
}

const sayProblem = (problem: string, error: unknown) => say(`${problem}: ${messageOf(error)}`)

/** The lowest OOM score that may be given: without CAP_SYS_RESOURCE nobody gets below init's own. */
function oomFloor(): number {
  return capabilities.capabilities().effective.includes('sys_resource') ? -1000 : Number(files.readText('/proc/self/oom_score_adj'))
}

/** In a container the exit code controls the supervisor: 0 stays down, anything else restarts the node. */
function endMachine(reason: StopReason, container: boolean, halts: boolean): void {
  say(reason === 'reboot' ? 'rebooting' : 'shutting down')
  if (container) process.exit(reason === 'reboot' ? 129 : 0)
  files.syncAll()
  if (reason === 'shutdown') rebooting.reboot(halts ? 'halt' : 'powerOff')
  rebooting.reboot(files.readTextIfThere('/sys/kernel/kexec_loaded')?.trim() === '1' ? 'kexec' : 'restart')
}

function die(what: string, error: unknown, container: boolean, stays: boolean): void {
  say(`init dies of an ${what}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`)
  if (container) process.exit(1)
  files.syncAll()
  if (stays) say('the machine halts, as "panic=0" requests: reset it by hand')
  rebooting.reboot(stays ? 'halt' : 'restart')
}
