/** From the first service to a machine that does what it is for. */
import type { Machine } from '../../os/area.ts'
import { boot } from '../../os/lifecycle/boot.ts'
import { install, withdrawConfig } from '../../os/lifecycle/first-install.ts'
import { initialize, loadConfig } from '../../os/lifecycle/initialize.ts'
import { isRefusal } from '../../os/lifecycle/install/install-system.ts'
import { staysOnFailure } from '../../os/lifecycle/kernel-parameters/endings.ts'
import { TakenOver } from '../../os/lifecycle/sequencer.ts'
import { isInstalled } from '../../os/lifecycle/slots/boot-disk.ts'
import { reboot } from '../../os/lifecycle/stop.ts'
import { pause } from '../../timing/pause.ts'

/** How often a start is tried before the machine is rebooted, and how long it rests between. */
const tries = 3
const retryDelay = 1_000
const never = new AbortController().signal

/**
 * Runs the sequences of a start; a sequence that is superseded leaves the machine to the other one. A single failure (a busy
 * device, an interrupted call) is no reason to reboot, so the sequence is run again: its tasks are idempotent. A sequence that
 * fails every time leads to a reboot, and when that fails too the machine stops anyway; with `panic=0` it is left as it is.
 */
export async function start(machine: Machine, { delay = retryDelay } = {}): Promise<void> {
  const { sequencer, log } = machine
  for (let left = tries; left > 0; left--)
    try {
      await sequencer.run('initialize', initialize(machine))
      while (machine.kernel.mode !== 'container' && !isInstalled(machine)) if (await installed(machine, delay)) return
      await sequencer.run('boot', boot(machine))
      return
    } catch (error) {
      if (error instanceof TakenOver) return
      log.error('start failed', { error, tries_left: left - 1 })
      await pause(delay, never)
    }
  if (machine.kernel.mode !== 'container' && staysOnFailure(machine.kernel.files.readText('/proc/cmdline'))) {
    log.error('the machine stays as it is, as "panic=0" requests: correct the cause, then reset it')
    return
  }
  try {
    await sequencer.run('reboot', reboot(machine))
  } catch (error) {
    if (error instanceof TakenOver) return
    log.error('reboot failed, the machine ends without', { error })
    machine.end('reboot')
  }
}

/**
 * Installs, which ends in a reboot. What fails once is done again: nobody may be there to send the configuration a second time.
 * Where it could not even begin, the machine is in maintenance again: another configuration may be right.
 */
async function installed(machine: Machine, delay: number): Promise<boolean> {
  const { sequencer, log } = machine
  const phases = install(machine, machine.config.state)
  for (let left = tries; ; left--)
    try {
      await sequencer.run('install', phases)
      return true
    } catch (error) {
      if (error instanceof TakenOver) throw error
      if (left > 1 && !isRefusal((error as Error).cause)) {
        log.error('installation failed, will be retried', { error, tries_left: left - 1 })
        await pause(delay, never)
        continue
      }
      if (isInstalled(machine)) throw error
      log.error('the machine was not installed, send a configuration that fits it', { error })
      await withdrawConfig(machine, machine.config.state)
      await sequencer.run('initialize', [{ name: 'config', tasks: [loadConfig(machine)] }])
      return false
    }
}
