import { describe, expect, test } from 'bun:test'
import { Store } from '../../../src/cosi/store.ts'
import { Affiliate } from '../../../src/os/cluster/resources/affiliate.ts'
import { Identity } from '../../../src/os/cluster/resources/identity.ts'
import { MachineConfig } from '../../../src/os/config/resources/machine-config.ts'
import { etcdTrouble } from '../../../src/os/diagnosis/etcd-trouble.ts'
import { findings, settingsOf } from '../../../src/os/diagnosis/findings.ts'
import { ComponentFallback, ComponentStatus, ComponentTrial } from '../../../src/os/k8s/resources/component.ts'
import { BootPhase } from '../../../src/os/lifecycle/resources/boot-phase.ts'
import { HostnameStatus } from '../../../src/os/network/resources/hostname.ts'
import { Diagnostic } from '../../../src/os/runtime/resources/diagnostic.ts'
import { KubeletSecret } from '../../../src/os/secrets/resources/kubelet-secret.ts'
import { splitUrl } from '../../../src/os/url.ts'
import { newCA, newCertificate, toBase64 } from '../../../src/pki/certificate.ts'
import { controlPlane } from '../k8s/machine.ts'

const by = (actor: string) => ({ roles: ['os:admin'], peer: '', actor })
const entry = (id: number, text: string, actor: string) => ({
  id,
  time: `2026-01-0${id}T00:00:00Z`,
  mode: 'auto' as const,
  by: by(actor),
  text,
})
const withFlag = (flag: string) => controlPlane('', `apiServer:\n  extraArgs: {${flag}: "1"}`)

function find(store: Store, { files = {}, history = [] as ReturnType<typeof entry>[] } = {}) {
  const contents: Record<string, string> = files
  return findings({ store, files: { readTextIfThere: (path) => contents[path] }, history: { list: () => history } })
}

describe('settings of a component', () => {
  const history = [entry(1, withFlag('v'), 'alice'), entry(2, withFlag('wrong'), 'bob'), entry(3, withFlag('wrong'), 'carol')]
  const wrong = 'digest'
  const applied = () => {
    const store = new Store()
    store.put(MachineConfig, 'v1alpha1', history.at(-1)!.text)
    return store
  }

  test('that were rejected are named with the configuration that brought them and the one to go back to', () => {
    const store = applied()
    const changed = ['cluster.apiServer.extraArgs.wrong']
    const since = '2026-01-02T00:00:09Z'
    store.put(ComponentFallback, 'kube-apiserver', { section: {}, rejected: wrong, changed, error: 'unknown flag: --wrong', since })
    const [found] = find(store, { history })
    expect(found?.subject).toBe('component kube-apiserver')
    expect(found?.error).toBe('unknown flag: --wrong')
    expect(found?.sentence).toBe(
      'it does not start with its new settings (cluster.apiServer.extraArgs.wrong), so it runs with the previous ones; ' +
        'configuration 2 by bob at 2026-01-02T00:00:00Z changed them: correct them, or go back with "talosctl config-history restore 1"',
    )
  })

  test('are not blamed alone when the previous ones do not start either', () => {
    const store = applied()
    const since = '2026-01-02T00:00:09Z'
    const fallback = { section: {}, rejected: wrong, changed: ['cluster.etcd.extraArgs.x'], error: 'x', since }
    store.put(ComponentFallback, 'etcd', fallback)
    store.put(ComponentStatus, 'etcd', { settings: 'previous', ready: false, failures: 2, error: 'no space left on device' })
    expect(find(store, { history })[0]).toMatchObject({
      sentence: expect.stringContaining('neither with its new settings (cluster.etcd.extraArgs.x) nor with the previous ones'),
      error: 'no space left on device',
    })
  })

  test('on trial are named while the component is not ready, and not once it is', () => {
    const store = applied()
    const changed = ['cluster.apiServer.extraArgs.wrong']
    const trial = { settings: wrong, changed, started: true, failures: 1, error: 'unknown flag: --wrong' }
    store.put(ComponentTrial, 'kube-apiserver', { ...trial, ready: false })
    expect(find(store, { history })[0]?.sentence).toContain('it is being started with new settings (cluster.apiServer.extraArgs.wrong)')
    store.put(ComponentTrial, 'kube-apiserver', { ...trial, ready: true })
    expect(find(store, { history })).toEqual([])
  })

  test('that wait for the next start of the component are not in the way of anything', () => {
    const store = applied()
    const changed = ['cluster.etcd.extraArgs.log-level']
    store.put(ComponentTrial, 'etcd', { settings: wrong, changed, started: false, ready: false, failures: 0, error: '' })
    expect(find(store, { history })).toEqual([])
  })
})

test('settings that a service takes at its next start are named with who changed them last, unless it was healthy after that', () => {
  const of = (timeout: string) => controlPlane('', `etcd:\n  extraArgs: {election-timeout: "${timeout}"}`)
  const history = [entry(1, of('1000'), 'alice'), entry(2, of('1'), 'bob')]
  const store = new Store()
  store.put(MachineConfig, 'v1alpha1', history.at(-1)!.text)
  const ask = (service: string, wellUntil?: Date) =>
    settingsOf(service, wellUntil, { store, files: { readTextIfThere: () => undefined }, history: { list: () => history } })
  expect(ask('etcd')).toBe(
    'its settings (cluster.etcd) were last changed by configuration 2 by bob at 2026-01-02T00:00:00Z: correct them, or go back with "talosctl config-history restore 1"',
  )
  expect(ask('etcd', new Date('2026-01-01T12:00:00Z'))).toContain('configuration 2')
  expect(ask('etcd', new Date('2026-01-03T00:00:00Z'))).toBeUndefined()
  expect(ask('trustd')).toBeUndefined()
})

test('another member of the same host name is named with its address', () => {
  const store = new Store()
  store.put(Identity, 'local', { nodeId: 'me' })
  store.put(HostnameStatus, 'hostname', { hostname: 'cp-1', domainname: '' })
  const member = (nodeId: string, hostname: string, address: string) =>
    store.put(Affiliate, nodeId, { nodeId, hostname, addresses: [address], operatingSystem: '', machineType: 'controlplane' })
  member('me', 'cp-1', '10.5.0.2')
  member('other', 'cp-2', '10.5.0.3')
  expect(find(store)).toEqual([])
  member('twin', 'cp-1', '10.5.0.4')
  expect(find(store)[0]).toMatchObject({
    subject: 'host name cp-1',
    sentence: expect.stringContaining('another controlplane member (10.5.0.4)'),
  })
})

test("a kubelet's certificate of an authority that is no longer accepted is named with that authority", () => {
  const [old, fresh] = ['old', 'new'].map((name) => newCA({ subject: { organizations: [name] }, kind: 'ecdsa' }))
  const { crt, key } = newCertificate({ ca: old!, subject: { commonName: 'system:node:a' }, usage: ['clientAuth'], lifetime: 1000_000 })
  const store = new Store()
  const accept = (...pairs: { crt: string }[]) =>
    store.put(KubeletSecret, 'kubelet', {
      endpoint: splitUrl('https://127.0.0.1:7445'),
      acceptedCAs: pairs.map((pair) => ({ crt: toBase64(pair.crt) })),
      bootstrapTokenID: 'abcdef',
      bootstrapTokenSecret: '0123456789abcdef',
    })
  const files = { '/var/lib/kubelet/pki/kubelet-client-current.pem': `${crt}\n${key}` }
  accept(old!, fresh!)
  expect(find(store, { files })).toEqual([])
  accept(fresh!)
  expect(find(store, { files })[0]).toMatchObject({
    subject: 'certificate of the kubelet',
    sentence: expect.stringContaining('another authority "O=old"'),
  })
})

test('failed steps of the start and diagnostics are findings', () => {
  const store = new Store()
  store.put(BootPhase, '1', {
    sequence: 'boot',
    phase: 'userSetup',
    tasks: [],
    state: 'failed',
    began: '1',
    error: 'write "/etc/x": EROFS',
  })
  store.put(Diagnostic, 'clock', { message: 'the clock is wrong', details: ['set it'] })
  expect(find(store).map(({ subject, error }) => [subject, error])).toEqual([
    ['boot phase userSetup', 'write "/etc/x": EROFS'],
    ['diagnostic clock', 'set it'],
  ])
})

test('etcd without a majority is named with the members that do not answer', () => {
  const member = (name: string, answers: boolean) => ({ name, address: `10.5.0.${name.at(-1)}`, answers })
  const [found] = etcdTrouble({ leader: false, members: [member('cp-1', true), member('cp-2', false), member('cp-3', false)] })
  expect(found?.sentence).toContain('1 of 3 answer, and a leader needs 2: bring back cp-2 (10.5.0.2), cp-3 (10.5.0.3)')
  expect(etcdTrouble({ leader: false, members: [member('cp-1', true)] })[0]?.sentence).toContain('no leader')
  expect(etcdTrouble({ leader: true, members: [member('cp-1', true), member('cp-2', true), member('cp-3', false)] })).toEqual([])
})
