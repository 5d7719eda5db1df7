import type { ServiceDefinition } from '../../../supervise/definition.ts'
import { program } from '../../../supervise/runner/program.ts'
import type { Machine } from '../../area.ts'
import { udevadm } from '../udevadm.ts'

const control = '/run/udev/control'

/** Buses and classes of what carries data: the network, disks, keyboards. Nothing can begin before these have their drivers. */
const first = ['pci', 'virtio', 'vmbus', 'xen', 'usb', 'hid', 'scsi', 'nvme', 'net', 'block', 'tpm', 'watchdog']

/** Events of what is there already, in this order. */
const questions: readonly string[][] = [
  ['control', '--reload'],
  ['trigger', '--type=subsystems', '--action=add'],
  ['trigger', '--type=devices', '--action=add', ...first.map((name) => `--subsystem-match=${name}`)],
  ['settle', '--timeout=50'],
]

/** Events of all the rest, which nobody waits for. */
const rest: readonly string[] = ['trigger', '--type=devices', '--action=add', ...first.map((name) => `--subsystem-nomatch=${name}`)]

/** Names devices, sets their permissions and loads the drivers they ask for. Well once the devices that carry data are seen to. */
export const udevdService = ({ kernel: { files }, spawn }: Machine): ServiceDefinition => {
  let settled = false
  return {
    id: 'udevd',
    dependsOn: [],
    async prepare() {
      settled = false
      files.mkdirAll('/run/udev')
    },
    runner: program({ argv: ['/usr/lib/systemd/systemd-udevd', '--resolve-names=never'], env: { PATH: '/usr/bin:/usr/sbin' } }, spawn),
    health: {
      async check(signal) {
        if (!files.exists(control)) throw new Error(`"${control}" is not there yet`)
        if (settled) return
        for (const question of questions) await udevadm(spawn, question, signal)
        settled = true
        await udevadm(spawn, rest, signal)
      },
      initialDelay: 100,
      period: 60_000,
      timeout: 55_000,
    },
    restart: 'always',
    cgroup: '/system/udevd',
  }
}
