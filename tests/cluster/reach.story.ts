/**
 * A configuration that cuts a node off goes back by itself: applied by our client, which comes back to see, and by one that
 * knows nothing of it. One that leaves the node within reach stays. A trial takes a minute
 * or more: each has a worker of its own.
 */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openNetwork } from '../../src/linux/net/rtnetlink.ts'
import { connect } from '../../src/rpc/client/channel.ts'
import { machine } from '../../src/rpc/enums.ts'
import { eventually, succeeded, TestCluster } from './cluster.ts'

const cluster = new TestCluster('reach')
/** One for each test below. */
const workers = 6

beforeAll(() => cluster.create('--workers', `${workers}`), 300_000)
afterAll(() => cluster.end(), 60_000)

interface Worker {
  ip: string
  name: string
}

function workerOf(number: number): Worker {
  const name = `reach-worker-${number}`
  return { name, ip: cluster.nodes().find((each) => each.name === name)?.ip ?? '' }
}

const on = (node: string, ...args: string[]) => cluster.on(node, ...args)

const block = 'apiVersion: v1alpha1\nkind: NetworkDefaultActionConfig\ningress: block\n'
const admit = (subnet: string, name = 'api') =>
  `apiVersion: v1alpha1\nkind: NetworkRuleConfig\nname: ${name}\nportSelector: {ports: [50000], protocol: tcp}\ningress: [{subnet: ${subnet}}]\n`

const newest = async (worker: string) =>
  succeeded(await on(worker, 'config-history'))
    .stdout.split('\n')[1]
    ?.trim() ?? ''

const shown = async (worker: string) => succeeded(await on(worker, 'config-history', 'show', '0')).stdout
const admitted = `${block}---\n${admit('10.0.0.0/8')}`
const tooNarrow = (text: string) => text.replace('subnet: 10.0.0.0/8', 'subnet: 192.0.2.0/24')

/** The field's client: it applies over one connection, which it keeps, and does not come back to see. */
function fieldClient(worker: string) {
  const { contexts, context } = JSON.parse(JSON.stringify(Bun.YAML.parse(readFileSync(join(cluster.home, 'config'), 'utf8')))) as {
    context: string
    contexts: Record<string, { ca: string; crt: string; key: string; endpoints: string[] }>
  }
  const { ca, crt, key, endpoints } = contexts[context]!
  const pem = (text: string) => Buffer.from(text, 'base64').toString()
  const tls = { ca: pem(ca), cert: pem(crt), key: pem(key) }
  const channel = connect({ address: endpoints[0]!, tls, defaultPort: 50_000 })
  const options = { metadata: { nodes: [worker] }, deadline: 30_000 }
  return {
    version: () => channel.unary('machine.MachineService/Version', {}, options),
    async apply(text: string): Promise<string> {
      const request = { data: Buffer.from(text), mode: machine.ApplyConfigurationRequest.Mode.AUTO }
      const { messages } = await channel.unary('machine.MachineService/ApplyConfiguration', request, options)
      return messages[0]?.modeDetails ?? ''
    },
    close: () => channel.close(),
  }
}

describe.concurrent('a configuration', () => {
  test('whose firewall shuts our client out is reverted, and the client reports it', async () => {
    const { ip } = workerOf(1)
    const { code, stderr } = await on(ip, 'patch', 'mc', '-p', block)
    expect(stderr).toContain('reverted in 60s unless the node is reached')
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/it goes back to the configuration before by itself|configuration \d+ was reverted/),
    ])
    await eventually(async () => expect(await newest(ip)).toContain('reverted: the machine was not reached after it'), 60)
    expect(succeeded(await on(ip, 'explain')).stdout).toMatch(/is not in force: it was reverted/)
  }, 180_000)

  test('with an address that nobody can reach is reverted, and the client reports it', async () => {
    const { ip, name } = workerOf(2)
    const { network } = cluster.record()
    const address = `${ip}/${network.cidr.split('/')[1]}`
    using inside = openNetwork({ netns: `/proc/${cluster.initOf(name)}/ns/net` })
    const link = inside.indexOf('eth0')
    const addresses = () => inside.addresses().flatMap((each) => (each.link === link && !each.address.includes(':') ? each.address : []))
    // From here on the node has its address from its configuration, as a machine has, and not from the host.
    const given = `apiVersion: v1alpha1\nkind: LinkConfig\nname: eth0\naddresses: [{address: ${address}}]\nroutes: [{gateway: ${network.gateway}}]\n`
    succeeded(await on(ip, 'patch', 'mc', '-p', given))
    inside.removeAddress({ link, address })
    await eventually(async () => expect(addresses()).toContain(address), 10)
    await eventually(async () => succeeded(await on(ip, 'version')), 30)
    const before = await shown(ip)
    const file = join(cluster.home, 'address.yaml')
    writeFileSync(file, before.replace(`address: ${address}`, 'address: 192.0.2.3/24'))
    // The answer may still come from the old address, or be lost with it: either way the client finds out.
    const applying = on(ip, 'apply-config', '-f', file)
    await eventually(async () => expect(addresses()).toEqual(['192.0.2.3/24']), 30)
    const { code, stderr } = await applying
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/it goes back to the configuration before by itself|configuration \d+ was reverted/),
    ])
    await eventually(async () => expect(await newest(ip)).toContain('reverted: the machine was not reached after it'), 60)
    await eventually(async () => expect(addresses()).toEqual([address]), 10)
    expect(await shown(ip)).toBe(before)
    expect(succeeded(await on(ip, 'explain')).stdout).toMatch(/is not in force: it was reverted/)
  }, 240_000)

  test('that lets the client in stays, and a client that knows nothing of trials does not lose the node either', async () => {
    const { ip } = workerOf(3)
    succeeded(await on(ip, 'patch', 'mc', '-p', admitted))
    expect(await newest(ip)).toContain('in force, confirmed')
    const client = fieldClient(ip)
    const now = await shown(ip)
    expect(await client.apply(tooNarrow(now))).toContain('reverted in 60s unless the node is reached')
    await client.close()
    await eventually(async () => expect(await newest(ip)).toContain('reverted: the machine was not reached after it'), 120)
    expect(await shown(ip)).toBe(now)
  }, 180_000)

  test('of another cluster as a whole, by force, is reverted after the restart, and the machine reports it', async () => {
    const { ip } = workerOf(6)
    const before = await shown(ip)
    const folder = join(cluster.home, 'other')
    succeeded(await cluster.talosctl('gen', 'config', 'other', `https://${cluster.nodes()[0]?.ip}:6443`, '--output-dir', folder))
    const { machine, cluster: foreign } = Bun.YAML.parse(readFileSync(join(folder, 'worker.yaml'), 'utf8').split(/^---$/m)[0]!) as Whole
    const { id, secret, token, ca } = foreign
    const patch = { machine: { token: machine.token, ca: machine.ca }, cluster: { id, secret, token, ca } }
    const result = succeeded(await on(ip, 'patch', 'mc', '-p', JSON.stringify(patch), '--force'))
    expect(result.stdout + result.stderr).toContain('with a reboot, reverted in 180s unless the node is reached after the reboot')
    // No control plane of that cluster signs a certificate for its API: until it goes back nobody reaches it.
    await eventually(
      async () =>
        expect(succeeded(await on(ip, 'explain')).stdout).toMatch(
          /configuration \d+, applied by .* is not in force: it was reverted, for the machine was not reached after it/,
        ),
      420,
    )
    expect(await shown(ip)).toBe(before)
  }, 600_000)
})

interface Whole {
  machine: { token: string; ca: { crt: string; key: string } }
  cluster: { id: string; secret: string; token: string; ca: { crt: string; key: string } }
}

describe.concurrent('a second apply during the trial, over the connection of before', () => {
  const labelled = (text: string, value: string) => text.replace(/^machine:\n( +)/m, `machine:\n$1nodeLabels: {second: "${value}"}\n$1`)
  const file = (name: string) => readFileSync(`/proc/${cluster.initOf(name)}/root/system/state/config.yaml`, 'utf8')
  const resource = async (ip: string) => succeeded(await on(ip, 'get', 'mc', 'v1alpha1', '-o', 'jsonpath={.spec}')).stdout.trimEnd()
  /** The node answers new connections, and its configuration is this one: in force, in its file, and as shown. */
  const endsWith = async ({ ip, name }: Worker, text: string) => {
    await eventually(async () => expect(await shown(ip)).toBe(text), 120)
    expect([file(name), await resource(ip)]).toEqual([text, text.trimEnd()])
  }
  /** A client whose connection was made before the trial, and the configuration until then. */
  const connected = async ({ ip }: Worker) => {
    succeeded(await on(ip, 'patch', 'mc', '-p', admitted))
    const client = fieldClient(ip)
    const before = await shown(ip)
    await client.version()
    expect(await client.apply(tooNarrow(before))).toContain('reverted in 60s unless the node is reached')
    return { client, before }
  }

  test('is tried as the first was: the node goes back to the configuration before both', async () => {
    const worker = workerOf(4)
    const { client, before } = await connected(worker)
    // New connections are refused by now, the kept one is not.
    expect(await client.apply(labelled(tooNarrow(before), 'kept'))).toContain('reverted in 60s unless the node is reached')
    expect(file(worker.name)).toContain('second: "kept"')
    await client.close()
    await endsWith(worker, before)
    expect(await newest(worker.ip)).toContain('reverted: the machine was not reached after it')
  }, 180_000)

  test('that takes the change back ends the trial, and stays', async () => {
    const worker = workerOf(5)
    const { client, before } = await connected(worker)
    expect(await client.apply(labelled(before, 'stays'))).not.toContain('reverted')
    await client.close()
    // Longer than the trial that it ended.
    await Bun.sleep(65_000)
    await endsWith(worker, labelled(before, 'stays'))
    expect(await newest(worker.ip)).toContain('in force')
  }, 180_000)
})
