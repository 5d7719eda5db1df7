/** Every row of the contract, by what is decided for it here, and every parameter of the table, by where it is read. */
import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Glob } from 'bun'
import { commandLine } from '../../../rootfs/image/command-line.ts'
import { ownParameters } from '../../../src/os/lifecycle/install/layout.ts'
import { complaintsAbout } from '../../../src/os/lifecycle/kernel-parameters/complaints.ts'
import { haltsOnShutdown, staysOnFailure } from '../../../src/os/lifecycle/kernel-parameters/endings.ts'
import { isOn } from '../../../src/os/lifecycle/kernel-parameters/parameter.ts'
import { kernelParameters } from '../../../src/os/lifecycle/kernel-parameters/table.ts'
import { bootNetwork } from '../../../src/os/network/boot-parameters.ts'
import { parseCommandLine } from '../../../src/wire/command-line.ts'

const rows = readFileSync(join(import.meta.dir, 'contract/kernel-args.tsv'), 'utf8')
  .trimEnd()
  .split('\n')
  .slice(1)
  .map((line) => line.split('\t') as [name: string, value: string, repeated: string, notes: string])
const known = new Map(kernelParameters.flatMap(([, parameters]) => parameters.map((each) => [each.name, each] as const)))
const complaints = (line: string) => complaintsAbout(parseCommandLine(line))

describe('of the contract', () => {
  const plain = rows.filter(([name]) => !/[ (]/.test(name))
  const byMark = (mark: string) =>
    rows.flatMap(([name, value]) => (name.startsWith(`(${mark}) `) ? [[name.slice(mark.length + 3), value]] : []))

  test('each parameter is decided', () => {
    expect(plain.length).toBe(36)
    expect(plain.map(([name]) => name).filter((name) => !known.has(name))).toEqual([])
  })

  test('each that may be repeated is read each time, and those of which the first counts are so', () => {
    const wrong = plain.filter(([name, , repeated]) => {
      const here = known.get(name)?.repeated
      return (repeated === 'yes' || repeated === 'concatenated') !== (here === 'all') || (repeated === 'first only') !== (here === 'first')
    })
    expect(wrong.map(([name]) => name)).toEqual([])
  })

  test('each option of a bond is read', () => {
    const [, options = ''] = rows.find(([name]) => name === 'bond options')!
    expect(options.split(' ').length).toBeGreaterThan(20)
    for (const option of options.split(' ')) {
      const { complaints: wrong } = bootNetwork(parseCommandLine(`bond=b:eth0:${option}=`))
      expect(wrong.filter((each) => each.includes('is not a bond option'))).toEqual([])
    }
  })

  test('each default argument is on the command line of the images', () => {
    // The kernel of the images is older than this parameter.
    const later = ['proc_mem.force_override']
    const here = new Map(parseCommandLine(commandLine([])).map(({ name, value }) => [name, value]))
    const expected = [...byMark('default arg'), ...byMark('secureboot arg')].flatMap(([names = '', values = '']) => {
      const each = values.split(' / ')
      return names.split(' / ').map((name, at) => [name, each[at] === '(empty)' ? '' : each[at]] as const)
    })
    expect(expected.length).toBe(11)
    expect(expected.filter(([name, value]) => here.get(name) !== value).map(([name]) => name)).toEqual(later)
  })

  test('each that an installation keeps is kept', () => {
    const [, names = ''] = rows.find(([name]) => name === '(preserved on install)')!
    const kept = [...names.split(' '), 'talos.config']
    const running = [...known.keys(), 'console', 'quiet'].map((name) => `${name}=x`).join(' ')
    expect(ownParameters(running, []).sort()).toEqual([...kept, 'console'].map((name) => `${name}=x`).sort())
  })
})

describe('of the table', () => {
  const root = join(import.meta.dir, '../../..')
  const text = [...new Glob('src/**/*.ts').scanSync(root)]
    .filter((path) => /^src\/(os|programs\/init)\//.test(path) && path !== 'src/os/lifecycle/kernel-parameters/table.ts')
    .map((path) => readFileSync(join(root, path), 'utf8'))
    .join('\n')

  test('each is read by its name, enforced by the kernel or by udevd, or refused', () => {
    const elsewhere = ['module.sig_enforce', 'enforcing', 'net.ifnames']
    const unread = [...known.values()].filter(({ name, refused }) => {
      if (refused !== undefined || elsewhere.includes(name)) return false
      const [, prefix = '', last = ''] = /^(talos\.config\.oauth\.)(.*)$/.exec(name) ?? []
      if (prefix) return !(text.includes(`'${prefix}'`) && text.includes(`'${last}'`))
      return name === 'ds' ? !text.includes('/^ds=nocloud') : !text.includes(`'${name}'`)
    })
    expect(unread.map(({ name }) => name)).toEqual([])
  })

  test('each name that is read is in it', () => {
    const read = [...text.matchAll(/parameterValues\((?:parseCommandLine\([^']*\)|\w+), '([\w.-]+)'\)/g)].map(([, name]) => name!)
    expect(read.length).toBeGreaterThan(12)
    expect(read.filter((name) => !known.has(name))).toEqual([])
  })
})

describe('the first lines of the console', () => {
  test('say nothing of what acts', () => {
    expect(complaints(commandLine([]))).toEqual([])
    expect(complaints('BOOT_IMAGE=/vmlinuz quiet usbcore.autosuspend=-1 panic=10 panic=0 selinux=0 enforcing=0')).toEqual([])
    const line = `talos.platform=equinixMetal em.events_url=http://a/ talos.config=http://a/\${uuid} talos.config.oauth.client_id=a
      talos.config.oauth.scope=a talos.config.oauth.scope=b talos.events.sink=[fd00::1]:80 talos.logging.kernel=udp://10.0.0.1:5
      talos.experimental.wipe=system:STATE talos.device.settle_time=1m talos.auditd.disabled=1 talos.dashboard.disabled=false
      talos.dashboard.console=ttyS0 talos.environment=A=b talos.environment=C= talos.halt_if_installed=0 talos.hostname=a.b
      talos.shutdown=halt talos.network.interface.ignore=eth0 talos.network.interface.ignore=eth1 siderolink.api=https://a?jointoken=b
      ip=dhcp net.ifnames=0 module.sig_enforce=1 talos.unified_cgroup_hierarchy=1 ichor.slot=a
      security=selinux selinux=1 enforcing=1`
    expect(complaints(line)).toEqual([])
  })

  test.each([
    ['talos.fips140=strict', '"talos.fips140=strict": it has no effect, the cryptography of this system has no FIPS mode: leave it out'],
    ['talos.debugshell', '"talos.debugshell": it has no effect, there is no shell in the image: use "talosctl debug"'],
    ['talos.unified_cgroup_hierarchy=0', '"talos.unified_cgroup_hierarchy=0": it has no effect, control groups of version 1'],
    ['selinux=1', '"selinux=1": the kernel uses AppArmor: add "security=selinux"'],
    ['enforcing=1', '"enforcing=1": the kernel uses AppArmor: add "security=selinux"'],
    ['security=selinux enforcing=yes', '"enforcing=yes": use 1 or 0'],
    ['security=smack', '"security=smack": use selinux or apparmor'],
    ['em.events_url=http://a/', '"em.events_url": it has an effect with "talos.platform=equinixMetal" only'],
    ['talos.shutdown=off', '"talos.shutdown=off": use poweroff or halt'],
    ['talos.dashboard.disabled', '"talos.dashboard.disabled": use 1 or 0; anything else counts as 0'],
    ['talos.halt_if_installed=yes', '"talos.halt_if_installed=yes": use 1 or 0'],
    ['talos.dashboard.console=/dev/ttyS0', 'is no terminal, like "tty2"'],
    ['talos.device.settle_time=30', '"talos.device.settle_time=30": use a duration of at most 10m, such as 30s'],
    ['talos.events.sink=10.0.0.1', '"talos.events.sink=10.0.0.1": an endpoint is a host and a port'],
    ['talos.logging.kernel=10.0.0.1:5', '"talos.logging.kernel=10.0.0.1:5": a URL with a port is required'],
    ['talos.experimental.wipe=all', 'want "system", "system:STATE,EPHEMERAL" or "/dev/sdb,/dev/sdc"'],
    ['talos.hostname=.b', '"talos.hostname=.b": the first label'],
    ['net.ifnames=2', '"net.ifnames=2": use 0 or 1'],
    ['talos.hostnam=a', '"talos.hostnam": it is not known, did you mean "talos.hostname"?'],
    ['talos.x=a', '"talos.x": it is not known, it has no effect'],
    ['talos.hostname=a talos.hostname=b', '"talos.hostname": it is given 2 times, the last applies'],
    ['vlan=eth0.1:eth0 vlan=eth0.2:eth0', '"vlan": it is given 2 times, the first applies'],
  ])('%s', (line, reason) => {
    const [first, ...more] = complaints(`quiet ${line}`)
    expect(first).toStartWith('kernel parameter "')
    expect(first).toContain(reason)
    expect(more).toEqual([])
  })

  test('print no secrets, and no value at length', () => {
    expect(complaints('siderolink.api=grpc://a?jointoken=hidden talos.environment=hidden').join()).not.toContain('hidden')
    for (const line of complaints(`talos.shutdown=${'x'.repeat(2000)} talos.${'y'.repeat(2000)}=1`)) expect(line.length).toBeLessThan(200)
  })
})

test('switches, and how a machine ends', () => {
  const on = (line: string) => isOn(parseCommandLine(line), 'a')
  expect(['a=1', 'a=true', 'a=0 a=T'].map(on)).toEqual([true, true, true])
  expect(['', 'a', 'a=0', 'a=1 a=0', 'a=yes', 'b=1'].map(on)).toEqual([false, false, false, false, false, false])
  expect(['talos.shutdown=halt', 'talos.shutdown=poweroff', 'quiet'].map(haltsOnShutdown)).toEqual([true, false, false])
  expect(['panic=0', 'panic=10 panic=0', 'panic=0 panic=10', 'panic=00', 'quiet'].map(staysOnFailure)).toEqual([
    true,
    true,
    false,
    false,
    false,
  ])
})
