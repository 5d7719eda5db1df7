/**
 * Programs that manage machines, by the calls they make: Terraform's provider, the control plane provider of the Cluster API, Omni
 * and upgrade operators. The calls are made with the field's own Go client (clients/ beside this file) against one real cluster.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { parse, parseAllDocuments } from 'yaml'
import { day, newCA, newCertificate } from '../../src/pki/certificate.ts'
import { eventually, succeeded, TestCluster } from '../cluster/cluster.ts'
import { buildManagers, runSteps, type Step, talosconfig } from './client.ts'

setDefaultTimeout(300_000)

const cluster = new TestCluster('clients')
const hasGo = Bun.which('go') !== null
/** No registry serves it: what refuses an upgrade must do so before a pull. */
const installer = 'registry.test/installer:v9.9.9'
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const pem = expect.stringContaining('-----BEGIN CERTIFICATE-----')
const inContainer = expect.stringContaining('method is not supported in container mode')

let program = ''
let controlPlane = ''
let worker = ''
/** An image that the nodes carry with them. */
let held = ''
let foreign = ''

const nameOf = (address: string) => cluster.nodes().find(({ ip }) => ip === address)?.name ?? ''
const labelsOf = async (address: string) => {
  const { items } = await cluster.objects('get', 'nodes')
  return items.find(({ metadata }) => metadata.name === nameOf(address))?.metadata.labels ?? {}
}

/** The value of a step that succeeded. */
function answered<T extends object>(steps: Record<string, Step>, name: string): T {
  const step = steps[name]
  expect(step).toMatchObject({ code: 'OK' })
  return step!.value as T
}

/** Runs a scenario on one node, through the control plane; its steps by name. */
async function scenario(name: string, node = controlPlane): Promise<Record<string, Step>> {
  const who = ['-talosconfig', cluster.env.TALOSCONFIG!, '-foreign', foreign, '-endpoint', controlPlane]
  const what = ['-image', installer, '-present', held]
  return runSteps(program, [...who, '-node', node, '-nodes', `${controlPlane},${worker}`, ...what, name])
}

if (hasGo)
  beforeAll(async () => {
    program = await buildManagers()
    await cluster.create('--workers', '1', '--cidr', '10.74.0.0/24')
    const ip = (role: string) => cluster.nodes().find((node) => node.role === role)?.ip ?? ''
    controlPlane = ip('controlplane')
    worker = ip('worker')
    held = /\S+\/etcd:\S+/.exec(succeeded(await cluster.talosctl('image', 'list')).stdout)?.[0] ?? ''
    const twin = newCA({ subject: { organizations: ['talos'] } })
    const certificate = newCertificate({ ca: twin, subject: { organizations: ['os:admin'] }, usage: ['clientAuth'], lifetime: day })
    foreign = talosconfig(cluster.home, twin.crt, certificate)
  }, 900_000)
afterAll(() => cluster.end())

describe.skipIf(!hasGo)("Terraform's provider", () => {
  let steps: Record<string, Step> = {}
  beforeAll(async () => {
    steps = await scenario('terraform')
  })

  test('reads version, disks and name of a node', () => {
    expect(steps.version).toMatchObject({ code: 'OK', value: [expect.stringMatching(/^v1\.13\.\d+$/)] })
    expect(steps.disks).toMatchObject({ code: 'OK', value: 1 })
    expect(steps.nodename).toMatchObject({ code: 'OK', value: nameOf(controlPlane) })
  })

  test('applies a configuration in one message, which takes effect', async () => {
    expect(steps.apply).toMatchObject({ code: 'OK', value: [{ mode: 'NO_REBOOT', details: expect.stringMatching(/./) }] })
    await eventually(async () => expect(await labelsOf(controlPlane)).toMatchObject({ 'clients.test/terraform': 'yes' }))
  })

  test.each(['not-yaml', 'empty', 'unknown-field', 'no-endpoint', 'unknown-kind'])('stops at a configuration that is %s', (name) => {
    expect(steps[`apply-${name}`]).toMatchObject({ code: 'InvalidArgument', message: expect.stringMatching(/./) })
  })

  test('finds the cluster bootstrapped already', () => {
    expect(steps.bootstrap).toMatchObject({ code: 'AlreadyExists' })
  })

  test('gets a kubeconfig', () => {
    expect(parse(String(steps.kubeconfig?.value))).toMatchObject({ kind: 'Config', clusters: [{ name: 'clients' }] })
  })

  test('pulls an image to where the system has its own, and shows why another is not there', () => {
    expect(steps.pull).toMatchObject({ code: 'OK', value: held })
    // At Unimplemented the provider takes the machine for one of an older release.
    const missing = steps['pull-missing']
    expect(missing).toMatchObject({
      code: expect.not.stringMatching(/OK|Unimplemented/),
      message: expect.stringContaining('registry.test'),
    })
  })

  test('gets a code at which it does not fall back to the call of older releases', () => {
    expect(steps.upgrade).toMatchObject({ code: 'FailedPrecondition', message: inContainer })
    expect(steps['upgrade-legacy']).toBeUndefined()
  })

  test('finds the cluster healthy with the calls of its own checks', () => {
    const both = (value: unknown) => ({ [controlPlane]: value, [worker]: value })
    const up = 'Running Running healthy=true'
    expect(steps['health-apid']).toMatchObject({ code: 'OK', value: both(up) })
    expect(steps['health-kubelet']).toMatchObject({ code: 'OK', value: both(up) })
    expect(Object.values(answered(steps, 'health-etcd'))).toEqual([up])
    expect(Object.values(answered(steps, 'health-members'))).toEqual([[nameOf(controlPlane)]])
    expect(steps['health-memory']).toMatchObject({ code: 'OK', value: both(true) })
    expect(steps['health-mounts']).toMatchObject({ code: 'OK', value: both(true) })
    for (const node of [controlPlane, worker]) {
      expect(steps[`health-diagnostics-${node}`]).toMatchObject({ code: 'OK', value: [] })
      expect(steps[`health-ready-${node}`]).toMatchObject({ code: 'OK', value: { stage: 'running', ready: true } })
    }
    const pods = answered<string[]>(steps, 'health-static-pods')
    const parts = ['apiserver', 'controller-manager', 'scheduler']
    expect(pods).toEqual(parts.map((part) => `kube-system/kube-${part}-${nameOf(controlPlane)}`))
  })
})

describe.skipIf(!hasGo)('the control plane provider of the Cluster API', () => {
  let steps: Record<string, Step> = {}
  beforeAll(async () => {
    steps = await scenario('capi')
  })

  test('finds by the metadata of each node which of them has etcd', () => {
    const value = answered<Record<string, string[]>>(steps, 'list-member')
    expect(value[controlPlane]).toEqual(expect.arrayContaining(['.', 'snap', 'wal']))
    expect(value[worker]).toEqual([expect.stringMatching(/^metadata: .*no such file or directory/)])
  })

  test('bootstraps once', () => {
    expect(steps.bootstrap).toMatchObject({ code: 'AlreadyExists' })
  })

  test('finds services in their state, with events, and none unhealthy', () => {
    const up = 'Running Running healthy=true'
    expect(Object.values(answered(steps, 'service-etcd'))).toEqual([up])
    expect(steps['service-kubelet']).toMatchObject({ code: 'OK', value: { [controlPlane]: up, [worker]: up } })
    expect(steps.services).toMatchObject({ code: 'OK', value: { unhealthy: [] } })
    expect(Object.keys(answered<{ services: object }>(steps, 'services').services).sort()).toEqual([controlPlane, worker].sort())
  })

  test('gets the members by the names of their nodes', () => {
    expect(Object.values(answered(steps, 'members'))).toEqual([[nameOf(controlPlane)]])
    expect(steps['remove-unknown']).toMatchObject({ code: 'NotFound' })
  })

  test('gets a reason when there is no other member to lead', () => {
    expect(steps.forfeit).toMatchObject({ code: 'FailedPrecondition', message: expect.stringContaining('no other voting member') })
  })

  test('sees that every node has ended the boot sequence that it began', () => {
    for (const node of [controlPlane, worker]) expect(steps[`boot-events-${node}`]).toMatchObject({ code: 'OK', value: ['START', 'STOP'] })
  })
})

describe.skipIf(!hasGo)('Omni', () => {
  let steps: Record<string, Step> = {}
  beforeAll(async () => {
    steps = await scenario('omni')
  })

  test('reads version and disks with the metadata of its proxy', () => {
    expect(steps.version).toMatchObject({ code: 'OK', value: [expect.stringMatching(/^v1\.13\.\d+$/)] })
    expect(steps.disks).toMatchObject({ code: 'OK', value: 1 })
  })

  test('finds every kind defined, and follows those it needs', () => {
    expect(steps['resource-definitions']).toMatchObject({ code: 'OK' })
    const network = ['hostname', 'links', 'routes', 'addresses']
    const hardware = ['processors', 'memory-modules', 'disks', 'system-disk']
    const runtime = ['platform', 'meta-keys', 'extensions', 'machine-status', 'security', 'diagnostics', 'version']
    const wrong = [...network, ...hardware, ...runtime].filter((name) => {
      const step = steps[`watch-${name}`]
      const { watched, listed } = (step?.value ?? {}) as Record<string, string[]>
      return step?.code !== 'OK' || !Bun.deepEquals(watched, listed)
    })
    expect(wrong.map((name) => steps[`watch-${name}`] ?? name)).toEqual([])
    const watched = (name: string) => answered<{ watched: string[] }>(steps, `watch-${name}`).watched
    expect(watched('addresses')).toEqual(expect.arrayContaining(['current', 'current-no-k8s']))
    for (const name of ['hostname', 'links', 'routes', 'platform', 'machine-status', 'version']) expect(watched(name)).not.toEqual([])
  })

  test('reads the command line, the boot id and certificates', () => {
    // A container was started without one of its own.
    expect(steps['kernel-cmdline']).toMatchObject({ code: 'NotFound' })
    expect(steps['read-boot-id']).toMatchObject({ code: 'OK', value: expect.stringMatching(/^[0-9a-f-]{36}\n$/) })
    expect(steps['read-cmdline']).toMatchObject({ code: 'OK' })
    for (const name of ['kubelet-ca', 'apiserver', 'etcd-ca']) expect(steps[`read-${name}`]).toMatchObject({ code: 'OK', value: pem })
    expect(steps['read-no-such-pki']).toMatchObject({ code: 'NotFound' })
  })

  test.each([9, 12, 15, 16])('gets a code that it takes for "there is no META" for key %i', (key) => {
    for (const verb of ['write', 'delete'])
      expect(steps[`meta-${verb}-${key}`]).toMatchObject({ code: 'FailedPrecondition', message: inContainer })
  })

  test('applies a configuration, and gets one message with mode and details', async () => {
    for (const [name, mode] of Object.entries({ apply: 'NO_REBOOT', 'apply-same': 'NO_REBOOT', 'apply-staged': 'STAGED' }))
      expect(steps[name]).toMatchObject({ code: 'OK', value: [{ mode, details: expect.stringMatching(/./) }] })
    await eventually(async () => expect(await labelsOf(controlPlane)).toMatchObject({ 'clients.test/omni': 'yes' }))
    expect(await labelsOf(controlPlane)).not.toHaveProperty('clients.test/staged')
  })

  test('gets codes of an installation that are final', () => {
    for (const name of ['install', 'upgrade']) expect(steps[name]).toMatchObject({ code: 'FailedPrecondition', message: inContainer })
  })

  test('pings a connection without calls, which stays', () => {
    expect(steps.keepalive).toMatchObject({ code: 'OK', value: 1 })
  })

  test('finds the texts it looks for when a machine does not take its certificate', async () => {
    const refused = await scenario('refused')
    const text = (name: string) => refused[name]?.message ?? ''
    for (const { code } of Object.values(refused)) expect(code).toBe('Unavailable')
    expect(text('no-certificate')).toContain('tls: certificate required')
    expect(text('no-certificate-1.2')).toContain('tls: protocol version not supported')
    expect(text('foreign-certificate')).toContain('tls: unknown certificate authority')
    expect(text('foreign-authority')).toContain('x509: certificate signed by unknown authority')
    expect(text('foreign-config')).toContain('x509: certificate signed by unknown authority')
    expect(text('expired-server')).toContain('tls: failed to verify certificate: x509: certificate has expired')
  })
})

describe.skipIf(!hasGo)('upgrade operators', () => {
  let steps: Record<string, Step> = {}
  beforeAll(async () => {
    steps = await scenario('upgrade')
  })

  test('read what they decide by', async () => {
    const tag = expect.stringMatching(/^v1\.13\.\d+$/)
    expect(steps.version).toMatchObject({ code: 'OK', value: [tag, tag] })
    const documents = succeeded(await cluster.talosctl('-n', controlPlane, 'get', 'mc', 'v1alpha1', '-o', 'jsonpath={.spec}')).stdout
    const image = parseAllDocuments(documents)[0]?.toJS().machine.install?.image ?? ''
    expect(steps.configuration).toMatchObject({ code: 'OK', value: { type: 'controlplane', image } })
    expect(steps.nodename).toMatchObject({ code: 'OK', value: nameOf(controlPlane) })
    expect(steps.extensions).toMatchObject({ code: 'OK' })
    expect(steps.platform).toMatchObject({ code: 'OK', value: ['platformmetadata'] })
    expect(steps['machine-status']).toMatchObject({ code: 'OK', value: 'running' })
  })

  test('find etcd able to lose a member for a while', () => {
    expect(steps['etcd-status']).toMatchObject({ code: 'OK', value: { leader: true, learner: false, behind: 0, size: true } })
    expect(steps['etcd-alarms']).toMatchObject({ code: 'OK', value: 0 })
  })

  test('apply without a restart', async () => {
    expect(steps['apply-no-reboot']).toMatchObject({ code: 'OK', value: [{ mode: 'NO_REBOOT' }] })
    await eventually(async () => expect(await labelsOf(controlPlane)).toMatchObject({ 'clients.test/upgrade': 'yes' }))
  })

  test.each(['plain', 'preserve', 'stage', 'force', 'powercycle', 'all', 'no-image'])('get a final code for an upgrade: %s', (name) => {
    expect(steps[`upgrade-${name}`]).toMatchObject({ code: 'FailedPrecondition', message: inContainer })
  })

  test('get it in the same way from the newer calls', () => {
    for (const name of ['lifecycle-upgrade', 'rollback'])
      expect(steps[name]).toMatchObject({ code: 'FailedPrecondition', message: inContainer })
  })

  test('cordon a node and mark it, and the node keeps both over a restart', async () => {
    const name = nameOf(worker)
    const marks = { 'upgrade.clients.test/plan': 'hash' }
    succeeded(await cluster.kubectl(['cordon', name]))
    succeeded(await cluster.kubectl(['label', 'node', name, 'upgrade.clients.test/plan=hash']))
    const steps = await scenario('reboot', worker)
    const before = String(steps['boot-id']?.value).trim()
    expect(before).toMatch(uuid)
    expect(steps.reboot).toMatchObject({ code: 'OK', value: expect.stringMatching(uuid) })
    expect(steps['events-of-actor']).toMatchObject({ code: 'OK', value: 'reboot START' })
    expect(steps['events-of-other-actor']).toMatchObject({ code: 'DeadlineExceeded' })
    // Operators take this text for the success of a request that restarts a machine.
    const ended = expect.stringContaining('graceful_stop')
    expect(steps['events-until-end']).toMatchObject({ code: 'OK', value: { events: { 'reboot START': 1 }, ended } })
    expect(steps['boot-id-changed']).toMatchObject({ code: 'OK', value: expect.stringMatching(/^[0-9a-f-]{36}\n$/) })
    expect(steps.running).toMatchObject({ code: 'OK', value: 'running' })
    expect(await labelsOf(worker)).toMatchObject(marks)
    const { items } = await cluster.objects('get', 'nodes')
    expect(items.find(({ metadata }) => metadata.name === name)?.spec).toMatchObject({ unschedulable: true })
    succeeded(await cluster.kubectl(['uncordon', name]))
    succeeded(await cluster.kubectl(['label', 'node', name, 'upgrade.clients.test/plan-']))
  })
})
