import type { ServiceDefinition } from '../../../supervise/definition.ts'
import { program } from '../../../supervise/runner/program.ts'
import type { Machine } from '../../area.ts'
import { udevadm } from '../udevadm.ts'

const control = '/run/udev/control'

/** Buses and classes of data devices: network, disks, keyboards. Nothing can start before these have their drivers. */
const first = ['pci', 'virtio', 'vmbus', 'xen', 'usb', 'hid', 'scsi', 'nvme', 'net', 'block', 'tpm', 'watchdog']

/** Events of existing devices, in this order. */
const questions: readonly string[][] = [
  ['control', '--reload'],
  ['trigger', '--type=subsystems', '--action=add'],
  ['trigger', '--type=devices', '--action=add', ...first.map((name) => `--subsystem-match=${name}`)],
  ['settle', '--timeout=50'],
]

/** Events of all other devices, which nothing waits for. */
const rest: readonly string[] = ['trigger', '--type=devices', '--action=add', ...first.map((name) => `--subsystem-nomatch=${name}`)]

/** udevd: names devices, sets their permissions and loads their drivers. Healthy once the events of data devices are processed. */
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
    domain: 'udev_t',
  }
}
