/** What a machine that has a configuration refuses to become, and what a rotation of authorities may do. */
import { describe, expect, test } from 'bun:test'
import { Disk } from '../../../../src/os/block/resources/disk.ts'
import { Identity } from '../../../../src/os/cluster/resources/identity.ts'
import { Member } from '../../../../src/os/cluster/resources/member.ts'
import { ConfigApply } from '../../../../src/os/config/apply/config-apply.ts'
import { ConfigContainer } from '../../../../src/os/config/container.ts'
import { MachineConfig } from '../../../../src/os/config/resources/machine-config.ts'
import { EtcdMember } from '../../../../src/os/etcd/resources/etcd-member.ts'
import { refuseSelector } from '../../../../src/os/lifecycle/install/install-system.ts'
import { newCA } from '../../../../src/pki/certificate.ts'
import { config, machineInMemory } from '../machine.ts'

const made = newCA({ subject: { commonName: 'y' }, kind: 'ecdsa' })
const [crt, key] = [made.crt, made.key].map((pem) => Buffer.from(pem).toString('base64'))

/** A machine with a configuration in force. */
function configured(text: string, mode: 'container' | 'metal' = 'container') {
  const { machine, store } = machineInMemory()
  Object.assign(machine.kernel, { mode })
  store.put(MachineConfig, 'v1alpha1', text)
  store.put(MachineConfig, 'persistent', text)
  const service = new ConfigApply(machine, { refuseSelector: (selector) => refuseSelector({ store }, selector) })
  const patched = (patch: string) => ConfigContainer.parse(text).patch(patch).toString()
  const refusal = (next: string, options = {}) =>
    service.apply(next, 'auto', { dryRun: true, ...options }).then(
      () => '',
      (error: Error) => error.message,
    )
  return { store, service, patched, refusal, of: (patch: string, options = {}) => refusal(patched(patch), options) }
}

const hint = '\n"talosctl apply-config --force" applies it anyway'

describe('a configured machine refuses', () => {
  test('a configuration without the v1alpha1 document, also by force', async () => {
    const { refusal } = configured(config('worker'))
    const link = 'apiVersion: v1alpha1\nkind: DummyLinkConfig\nname: d0\nup: true\n'
    for (const force of [false, true])
      expect(await refusal(link, { force })).toBe("the applied machine configuration doesn't contain v1alpha1 config")
  })

  test('to become another machine; a member of etcd also by force', async () => {
    const { refusal, store } = configured(config('controlplane'))
    const worker = config('worker')
    expect(await refusal(worker)).toBe(
      `machine.type: this machine is a controlplane and would become a worker: reset it and configure it again${hint}`,
    )
    expect(await refusal(worker, { force: true })).toBe('')
    store.put(EtcdMember, 'local', { memberID: 'x' })
    expect(await refusal(worker, { force: true })).toContain('this control plane is a member of etcd and cannot become a worker')
  })

  test("another cluster's id, secret, tokens and keys", async () => {
    const { of } = configured(config('controlplane'))
    for (const [patch, path] of [
      ['cluster: {id: x}', 'cluster.id'],
      [`cluster: {secret: ${Buffer.alloc(32, 'x').toString('base64')}}`, 'cluster.secret'],
      ['cluster: {token: xxxxxx.xxxxxxxxxxxxxxxx}', 'cluster.token'],
      ['machine: {token: x}', 'machine.token'],
      [`cluster: {serviceAccount: {key: ${key}}}`, 'cluster.serviceAccount.key'],
      [`cluster: {etcd: {ca: {crt: ${crt}, key: ${key}}}}`, 'cluster.etcd.ca'],
    ] as const) {
      expect(await of(patch)).toMatch(
        new RegExp(`^${path.replaceAll('.', '\\.')}: not the .*in force.*${'\n'}"talosctl apply-config --force"`),
      )
      expect(await of(patch, { force: true })).toBe('')
    }
  })

  test('networks of pods and services that the cluster does not have', async () => {
    const { of } = configured(config('controlplane'))
    expect(await of('cluster: {network: {podSubnets: [10.0.0.0/16]}}')).toContain('has its pods in 10.244.0.0/16')
    expect(await of('cluster: {network: {serviceSubnets: [10.97.0.0/16]}}')).toContain('has its services in 10.96.0.0/12')
    expect(await of('cluster: {network: {podSubnets: [10.244.0.0/16, "fd00::/64"]}}')).toBe('')
  })

  test('the host name of another member', async () => {
    const { of, store } = configured(config('worker'))
    const member = (id: string) => ({
      nodeId: id,
      hostname: id,
      addresses: ['10.0.0.9'],
      machineType: 'worker' as const,
      operatingSystem: '',
    })
    const named = (name: string) => `apiVersion: v1alpha1\nkind: HostnameConfig\nauto: off\nhostname: ${name}\n`
    store.put(Identity, 'local', { nodeId: 'own' })
    store.put(Member, 'own', member('own'))
    store.put(Member, 'other', member('other'))
    expect(await of(named('Other.example.com'))).toStartWith(
      'hostname "other.example.com": the member with the addresses 10.0.0.9 has that name',
    )
    expect(await of(named('own'))).toBe('')
    expect(await of(named('free'))).toBe('')
  })

  test('an install disk that is not there', async () => {
    const { of, store } = configured(config('worker', 'machine: {install: {disk: /dev/sda}}'), 'metal')
    const disk = { size: 1, pretty_size: '1 B', io_size: 512, sector_size: 512, readonly: false, cdrom: false }
    store.put(Disk, 'sda', { dev_path: '/dev/sda', symlinks: ['/dev/disk/by-id/x'], ...disk } as never)
    expect(await of('machine: {install: {disk: /dev/sdx}}')).toStartWith(
      'machine.install.disk: there is no /dev/sdx on this machine, only /dev/sda',
    )
    expect(await of('machine: {install: {disk: /dev/disk/by-id/x}}')).toBe('')
  })

  test('a changed selector of the install disk that fits none, or several', async () => {
    const { of, patched, refusal, service, store } = configured(config('worker', 'machine: {install: {disk: /dev/sda}}'), 'metal')
    const disk = { size: 1e9, pretty_size: '1 GB', io_size: 512, sector_size: 512, readonly: false, cdrom: false }
    const choosing = (selector: string) => `machine: {install: {diskSelector: ${selector}}}`
    // Before the disks are known nothing is known to be wrong.
    expect(await of(choosing('{model: none}'))).toBe('')
    for (const name of ['sda', 'sdb']) store.put(Disk, name, { dev_path: `/dev/${name}`, model: `model ${name}`, ...disk } as never)
    expect(await of(choosing('{model: none}'))).toStartWith(
      'choose install disk: no disk matches machine.install.diskSelector {"model":"none"}; the disks of this machine are: /dev/sda',
    )
    expect(await of(choosing('{match: "disk.size > 2u * GB"}'))).toContain('no disk matches')
    expect(await of(choosing('{size: 1GB}'))).toContain('/dev/sda and /dev/sdb match')
    expect(await of(choosing('{model: model sdb}'))).toBe('')
    const forced = patched(choosing('{model: none}'))
    await service.apply(forced, 'no-reboot', { force: true })
    // What is in force already is no change.
    expect(await refusal(forced.replace('machine:\n', 'machine:\n  nodeLabels: {a: b}\n'))).toBe('')
  })
})

describe('an authority', () => {
  test('is replaced by the steps of a rotation, and by no shorter way', async () => {
    for (const [type, section] of [
      ['controlplane', 'machine'],
      ['controlplane', 'cluster'],
      ['worker', 'machine'],
      ['worker', 'cluster'],
    ] as const) {
      const first = config(type)
      const old = ConfigContainer.parse(first).v1alpha1![section]!.ca!.crt!
      const issuing = type === 'worker' ? `ca: {crt: ${crt}}` : `ca: {crt: ${crt}, key: ${key}}`
      const steps = [
        `${section}: {acceptedCAs: [{crt: ${crt}}]}`,
        `- {op: replace, path: /${section}/acceptedCAs, value: [{crt: ${old}}]}\n- {op: replace, path: /${section}/ca, value: {${issuing.slice(5, -1)}}}`,
        `- {op: remove, path: /${section}/acceptedCAs}`,
      ]
      let text = first
      for (const step of steps) {
        const { patched, refusal } = configured(text)
        expect(await refusal(patched(step))).toBe('')
        text = patched(step)
      }
      expect(await configured(first).refusal(text)).toStartWith(
        `${section}.ca: not the authority in force, which is not in "${section}.acceptedCAs" either`,
      )
      expect(await configured(first).refusal(text, { force: true })).toBe('')
    }
  })
})
