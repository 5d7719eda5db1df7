/** Kernel and initramfs, as `./mkimage.sh` makes them, on an emulated machine: from power-on to maintenance and off again. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { finished } from '../support/command-result.ts'
import { qmp } from './control.ts'
import { TestMachine } from './machine.ts'

const dist = join(import.meta.dir, '../../dist')
const image = process.env.ICHOR_VM_IMAGE ?? dist
const folder = mkdtempSync(join(tmpdir(), 'ichor-vm-'))
const control = join(folder, 'control')
const minutes = 60_000
let machine: TestMachine

beforeAll(async () => {
  const append = 'talos.shutdown=halt talos.device.settle_time=3s'
  machine = await TestMachine.start({ image, console: join(folder, 'boot.log'), control, append })
  console.log(`console: ${join(folder, 'boot.log')}`)
})
afterAll(() => machine.unplug())

async function talosctl(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const child = Bun.spawn([join(dist, 'talosctl'), '--nodes', `127.0.0.1:${machine.port}`, ...args], { stdout: 'pipe', stderr: 'pipe' })
  return finished(child)
}

let fingerprint = ''

test(
  'the machine comes up and prints its addresses on the console',
  async () => {
    // The certificate is issued again once there is an address: the last line is the one that counts.
    await machine.shows(/addresses=10\.0\.2\.15 port=50000/, 5 * minutes)
    await machine.shows(/service=apid .*"Health check successful"/, 5 * minutes)
    expect(machine.console).toContain('phase=systemRequirements')
    expect(machine.console).toMatch(/waiting for devices that appear late.* seconds=3\b/)
    expect(machine.console).not.toContain('kernel parameter "')
    expect(machine.console).not.toMatch(/init dies|Kernel panic/)
  },
  6 * minutes,
)

test(
  'the API answers in maintenance, known by the fingerprint on the console',
  async () => {
    fingerprint = [...machine.console.matchAll(/fingerprint="?([A-Za-z0-9+/]{43}=)/g)].at(-1)?.[1] ?? ''
    const version = await talosctl('version', '--insecure')
    expect(version.stderr).toBe('')
    expect(version.stdout).toMatch(/Server:[\s\S]*v1\.13\.\d+/)
    const file = join(folder, 'config.yaml')
    await Bun.write(file, 'version: v1alpha1\n')
    const wrong = await talosctl('apply-config', '--insecure', '--file', file, '--cert-fingerprint', `${'A'.repeat(43)}=`)
    expect(wrong.code).toBe(1)
    expect(wrong.stderr).toContain(fingerprint)
  },
  2 * minutes,
)

test(
  'udevd has named the network interface, and it has its address by DHCP',
  async () => {
    const links = await talosctl('get', 'links', '--insecure')
    expect(links.stdout).toMatch(/enp0s\d+ .* up /)
    const addresses = await talosctl('get', 'addresses', '--insecure')
    expect(addresses.stdout).toContain('10.0.2.15/24')
  },
  2 * minutes,
)

test(
  'with talos.shutdown=halt a shutdown leaves it powered',
  async () => {
    await qmp(control, 'system_powerdown', {})
    await machine.shows(/reboot: System halted/, 5 * minutes)
  },
  6 * minutes,
)

test(
  'a machine without the requested hardening does not start, and stays as it is with panic=0; what is refused is in its first lines',
  async () => {
    await machine.unplug()
    const append = 'pti=off panic=0 selinux=1 talos.fips140=strict talos.hostnam=a'
    machine = await TestMachine.start({ image, console: join(folder, 'refused.log'), append })
    await machine.shows(/kernel parameter \\?"pti=on\\?" is missing/, 5 * minutes)
    for (const refused of [
      '"selinux=1": the kernel uses AppArmor',
      '"talos.fips140=strict": it has no effect',
      'did you mean "talos.hostname"',
    ])
      expect(machine.console.indexOf(refused)).toBeWithin(1, machine.console.indexOf('phase=systemRequirements'))
    await machine.shows(/the machine stays as it is/, 5 * minutes)
    expect(machine.console).not.toContain('rebooting')
  },
  12 * minutes,
)
