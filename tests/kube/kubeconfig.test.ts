import { expect, test } from 'bun:test'
import { KubeError } from '../../src/kube/errors.ts'
import {
  accessOf,
  buildKubeconfig,
  emptyKubeconfig,
  formatKubeconfig,
  mergeKubeconfig,
  parseKubeconfig,
  removeContext,
} from '../../src/kube/kubeconfig.ts'
import { newCA, newCertificate, type PemPair } from '../../src/pki/certificate.ts'

const mine = (server: string) =>
  buildKubeconfig({ cluster: 'c1', user: 'admin@c1', context: 'admin@c1', namespace: 'default', server, ca: 'CA', cert: 'CRT', key: 'KEY' })

const foreign = `
apiVersion: v1
kind: Config
clusters:
- name: c1
  cluster: {server: "https://other:6443", insecure-skip-tls-verify: true}
users:
- name: me
  user: {exec: {command: aws, args: [eks]}}
contexts:
- name: work
  context: {cluster: c1, user: me}
current-context: work
preferences: {colors: true}
`

test('a built kubeconfig can be parsed and used', () => {
  const text = formatKubeconfig(mine('https://1.2.3.4:6443'))
  expect(accessOf(parseKubeconfig(text))).toEqual({ server: 'https://1.2.3.4:6443', ca: 'CA', cert: 'CRT', key: 'KEY' })
  expect(text).toContain('namespace: default')
})

test('a merge keeps existing entries and renames conflicting ones, references included', () => {
  const { config, renamed } = mergeKubeconfig(parseKubeconfig(foreign), mine('https://a:6443'))
  expect(renamed).toEqual([{ kind: 'cluster', from: 'c1', to: 'c1-1' }])
  expect(config.clusters.get('c1')).toEqual({ server: 'https://other:6443', 'insecure-skip-tls-verify': true })
  expect(config.contexts.get('admin@c1')).toEqual({ cluster: 'c1-1', user: 'admin@c1', namespace: 'default' })
  expect(config.currentContext).toBe('admin@c1')
  const again = parseKubeconfig(formatKubeconfig(config))
  expect(again.users.get('me')).toEqual({ exec: { command: 'aws', args: ['eks'] } })
  expect(again.rest).toEqual({ preferences: { colors: true } })
})

test('merging the same twice changes nothing the second time', () => {
  const once = mergeKubeconfig(emptyKubeconfig(), mine('https://a:6443')).config
  const twice = mergeKubeconfig(once, mine('https://a:6443'))
  expect(twice.renamed).toEqual([])
  expect(formatKubeconfig(twice.config)).toBe(formatKubeconfig(once))
})

const authority = () => newCA({ subject: { organizations: ['kubernetes'] } })
const admin = (ca: PemPair, name = 'admin', server = 'https://a:6443') => {
  const { crt, key } = newCertificate({
    ca,
    subject: { commonName: name, organizations: ['system:masters'] },
    usage: ['clientAuth'],
    lifetime: 3600_000,
  })
  return buildKubeconfig({ cluster: 'c1', user: 'admin@c1', context: 'admin@c1', namespace: 'default', server, ca: ca.crt, cert: crt, key })
}

test('a newer certificate of the same user replaces the previous one, without a second context', () => {
  const ca = authority()
  const once = mergeKubeconfig(parseKubeconfig(foreign), admin(ca)).config
  const newer = admin(ca)
  const { config, renamed } = mergeKubeconfig(once, newer)
  expect(renamed).toEqual([{ kind: 'cluster', from: 'c1', to: 'c1-1' }])
  expect([...config.contexts.keys()]).toEqual(['work', 'admin@c1'])
  expect([...config.users.keys()]).toEqual(['me', 'admin@c1'])
  expect(accessOf(config)).toEqual(accessOf(newer))
})

test('a user of another cluster, or another user, never replaces one of the same name', () => {
  const ca = authority()
  const once = mergeKubeconfig(emptyKubeconfig(), admin(ca)).config
  for (const other of [admin(authority()), admin(ca, 'reader'), admin(ca, 'admin', 'https://b:6443')]) {
    const { config } = mergeKubeconfig(once, other)
    expect([...config.contexts.keys()]).toEqual(['admin@c1', 'admin@c1-1'])
    expect(accessOf(config, 'admin@c1')).toEqual(accessOf(once, 'admin@c1'))
  }
})

test('overwriting replaces the entry of that name', () => {
  const { config, renamed } = mergeKubeconfig(parseKubeconfig(foreign), mine('https://a:6443'), { overwrite: true })
  expect(renamed).toEqual([])
  expect(config.clusters.get('c1')?.server).toBe('https://a:6443')
})

test('the current context can be left alone', () => {
  expect(mergeKubeconfig(parseKubeconfig(foreign), mine('https://a:6443'), { activate: false }).config.currentContext).toBe('work')
})

test('a context is removed with the cluster and user that only it referenced', () => {
  const { config } = mergeKubeconfig(parseKubeconfig(foreign), mine('https://a:6443'))
  const left = removeContext(config, 'admin@c1')
  expect([...left.clusters.keys()]).toEqual(['c1'])
  expect([...left.users.keys()]).toEqual(['me'])
  expect(left.currentContext).toBe('')
})

test.each([
  ['[]', 'kubeconfig: the document is not a mapping'],
  ['kind: Pod', 'kubeconfig: kind is "Pod", not "Config"'],
  ['clusters: {}', 'kubeconfig: "clusters" is not a list'],
  ['users: [{name: x, user: 3}]', 'kubeconfig: an entry of "users" has no name or no user'],
  ['a: [', undefined],
])('%s is refused', (text, message) => {
  const read = () => parseKubeconfig(text)
  expect(read).toThrow(KubeError)
  if (message) expect(read).toThrow(message)
})
