/** The SELinux policy on an emulated machine: loaded and permissive, enforced, and refused where the kernel does not use SELinux. */
import { afterEach, expect, test } from 'bun:test'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { dist, TestMachine } from '../machine.ts'

const minutes = 60_000
const folder = mkdtempSync(join(tmpdir(), 'ichor-vm-selinux-'))
let machine: TestMachine | undefined

/** Without the audit service the kernel prints what it denies on the console. */
async function start(name: string, parameters: string): Promise<TestMachine> {
  const console = join(folder, `${name}.log`)
  machine = await TestMachine.start({ image: dist, console, append: `talos.auditd.disabled=1 panic=0 ${parameters}` })
  return machine
}

afterEach(() => machine?.unplug())

test.each([
  ['permissive', 'security=selinux selinux=1'],
  ['enforcing', 'security=selinux selinux=1 enforcing=1'],
])(
  '%s, the machine reaches maintenance, its API answers and reports the state, and nothing is denied',
  async (state, parameters) => {
    const on = await start(state, parameters)
    await on.shows(new RegExp(`SELinux policy loaded, ${state}`), 10 * minutes)
    await on.shows(/addresses=10\.0\.2\.15 port=50000/, 15 * minutes)
    await on.shows(/service=apid .*"Health check successful"/, 15 * minutes)
    await on.shows(/service=containerd .*"Health check successful"/, 15 * minutes)
    await on.outputs(() => on.insecurely('version'), /Server:[\s\S]*v1\.13\.\d+/, 10 * minutes)
    const reported = new RegExp(`selinuxState: enabled, ${state}`)
    await on.outputs(() => on.insecurely('get', 'securitystate', '--output', 'yaml'), reported, 10 * minutes)
    expect(on.console).not.toContain('avc:')
    expect(on.console).not.toMatch(/SELinux: .*(not defined in policy|unmapped)|kernel parameter "/)
  },
  45 * minutes,
)

test(
  'enforcing, a machine whose kernel does not use SELinux does not start, and states what to add',
  async () => {
    const on = await start('refused', 'enforcing=1')
    await on.shows(/the kernel does not use SELinux: add security=selinux/, 10 * minutes)
    expect(on.console).not.toContain('[ichor]')
  },
  15 * minutes,
)
