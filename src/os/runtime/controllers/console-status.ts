import { type Controller, defineController, weak } from '../../../cosi/controller.ts'
import { addressOnly } from '../../../wire/prefix.ts'
import { HostnameStatus } from '../../network/resources/hostname.ts'
import { NodeAddress } from '../../network/resources/node-address.ts'
import type { LastProblem } from '../last-problem.ts'
import { MachineStatus } from '../resources/machine-status.ts'
import { Version } from '../resources/version.ts'

/** Minimum interval of status lines on the console, in milliseconds: a start changes much in little time. */
const pause = 5_000

/** A ready machine no longer shows its last problem after so many milliseconds. */
const stale = 5 * 60_000

/** Limit of the line's length, so that it wraps only once or twice on a serial console. */
const longest = 160

/**
 * Writes the machine's status as the last line of the console: version, stage, name and addresses, unmet conditions, and the
 * last problem.
 */
export const reportStatus = (problem: Pick<LastProblem, 'text' | 'age' | 'onChange'>, { wait = pause } = {}): Controller => {
  let shown = ''
  let next = Number.NEGATIVE_INFINITY
  return defineController({
    name: 'runtime.ConsoleStatusController',
    inputs: {
      version: weak(Version, { id: 'version' }),
      machine: weak(MachineStatus, { id: 'machine' }),
      hostname: weak(HostnameStatus, { id: 'hostname' }),
      addresses: weak(NodeAddress),
    },
    outputs: {},
    start({ wake }) {
      problem.onChange(wake)
    },
    reconcile({ version, machine, hostname, addresses, log, clock, wakeIn }) {
      const status = machine.get('machine')?.spec
      const system = version.get('version')?.spec
      if (!status || !system) return
      const { ready, unmetConditions } = status.status
      // Addresses of pods are known as such only when there is a cluster.
      const found = addresses.get('routed-no-k8s') ?? addresses.get('routed') ?? addresses.get('current')
      const at = found?.spec.addresses.map(addressOnly) ?? []
      const reasons = unmetConditions.map(({ name, reason }) => `${name} (${reason})`)
      const fresh = ready && problem.age !== undefined ? stale - problem.age : Number.POSITIVE_INFINITY
      const facts = [
        `${system.name} ${system.version}`,
        ready ? `${status.stage}, ready` : status.stage,
        [hostname.get('hostname')?.spec.hostname ?? 'without a name', at.length > 0 ? `at ${at.join(' ')}` : 'without an address'].join(
          ' ',
        ),
        ...(reasons.length > 0 && status.stage !== 'maintenance' ? [cut(`waits for ${reasons.join(', ')}`)] : []),
        ...(problem.text === undefined || fresh <= 0 ? [] : [cut(`last problem: ${problem.text}`)]),
      ]
      const line = `status: ${facts.join(' | ')}`
      if (problem.text !== undefined && fresh > 0 && fresh <= stale) wakeIn(fresh)
      if (line === shown) return
      const left = next - clock.elapsed()
      if (left > 0 && left <= wait) return wakeIn(left)
      shown = line
      next = clock.elapsed() + wait
      log.info(line)
    },
  })
}

const cut = (text: string) => (text.length > longest ? `${text.slice(0, longest - 1)}…` : text)
