/**
 * A configuration that cuts a node off goes back by itself: applied by our client, which comes back to see, and by one that
 * knows nothing of it. One that leaves the node within reach stays.
 */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openNetwork } from '../../src/linux/net/rtnetlink.ts'
import { connect } from '../../src/rpc/client/channel.ts'
import { machine } from '../../src/rpc/enums.ts'
import { eventually, succeeded, TestCluster } from './cluster.ts'

const cluster = new TestCluster('reach')
let worker = ''

beforeAll(async () => {
  await cluster.create()
  worker = cluster.nodes().find(({ role }) => role === 'worker')?.ip ?? ''
}, 300_000)
afterAll(() => cluster.end(), 60_000)

const on = (node: string, ...args: string[]) => cluster.on(node, ...args)

const block = 'apiVersion: v1alpha1\nkind: NetworkDefaultActionConfig\ningress: block\n'
const admit = (subnet: string, name = 'api') =>
  `apiVersion: v1alpha1\nkind: NetworkRuleConfig\nname: ${name}\nportSelector: {ports: [50000], protocol: tcp}\ningress: [{subnet: ${subnet}}]\n`

const newest = async () =>
  succeeded(await on(worker, 'config-history'))
    .stdout.split('\n')[1]
    ?.trim() ?? ''

test('a firewall that shuts our client out is reverted, and the client reports it', async () => {
  const { code, stderr } = await on(worker, 'patch', 'mc', '-p', block)
  expect(stderr).toContain('reverted in 60s unless the node is reached')
  expect([code, stderr]).toEqual([
    1,
    expect.stringMatching(/it goes back to the configuration before by itself|configuration \d+ was reverted/),
  ])
  await eventually(async () => expect(await newest()).toContain('reverted: the machine was not reached after it'), 60)
  expect(succeeded(await on(worker, 'explain')).stdout).toMatch(/is not in force: it was reverted/)
}, 180_000)

test('an address that nobody can reach is reverted, and the client reports it', async () => {
  const { network } = cluster.record()
  const address = `${worker}/${network.cidr.split('/')[1]}`
  using inside = openNetwork({ netns: `/proc/${cluster.initOf('reach-worker-1')}/ns/net` })
  const link = inside.indexOf('eth0')
  const addresses = () => inside.addresses().flatMap((each) => (each.link === link && !each.address.includes(':') ? each.address : []))
  // From here on the node has its address from its configuration, as a machine has, and not from the host.
  const given = `apiVersion: v1alpha1\nkind: LinkConfig\nname: eth0\naddresses: [{address: ${address}}]\nroutes: [{gateway: ${network.gateway}}]\n`
  succeeded(await on(worker, 'patch', 'mc', '-p', given))
  inside.removeAddress({ link, address })
  await eventually(async () => expect(addresses()).toContain(address), 10)
  await eventually(async () => succeeded(await on(worker, 'version')), 30)
  const before = succeeded(await on(worker, 'config-history', 'show', '0')).stdout
  const file = join(cluster.home, 'address.yaml')
  writeFileSync(file, before.replace(`address: ${address}`, 'address: 192.0.2.3/24'))
  // The answer may still come from the old address, or be lost with it: either way the client finds out.
  const applying = on(worker, 'apply-config', '-f', file)
  await eventually(async () => expect(addresses()).toEqual(['192.0.2.3/24']), 30)
  const { code, stderr } = await applying
  expect([code, stderr]).toEqual([
    1,
    expect.stringMatching(/it goes back to the configuration before by itself|configuration \d+ was reverted/),
  ])
  await eventually(async () => expect(await newest()).toContain('reverted: the machine was not reached after it'), 60)
  await eventually(async () => expect(addresses()).toEqual([address]), 10)
  expect(succeeded(await on(worker, 'config-history', 'show', '0')).stdout).toBe(before)
  expect(succeeded(await on(worker, 'explain')).stdout).toMatch(/is not in force: it was reverted/)
}, 240_000)

test('one that lets the client in stays', async () => {
  succeeded(await on(worker, 'patch', 'mc', '-p', `${block}---\n${admit('10.0.0.0/8')}`))
  expect(await newest()).toContain('in force, confirmed')
}, 60_000)

/** The field's client: it applies over one connection, which it keeps, and does not come back to see. */
function fieldClient() {
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

const shown = async () => succeeded(await on(worker, 'config-history', 'show', '0')).stdout
const tooNarrow = (text: string) => text.replace('subnet: 10.0.0.0/8', 'subnet: 192.0.2.0/24')

test('a client that knows nothing of it does not lose the node either', async () => {
  const client = fieldClient()
  const now = await shown()
  expect(await client.apply(tooNarrow(now))).toContain('reverted in 60s unless the node is reached')
  await client.close()
  await eventually(async () => expect(await newest()).toContain('reverted: the machine was not reached after it'), 120)
  expect(await shown()).toBe(now)
}, 180_000)

describe('a second apply during the trial, over the connection of before', () => {
  const labelled = (text: string, value: string) => text.replace(/^machine:\n( +)/m, `machine:\n$1nodeLabels: {second: "${value}"}\n$1`)
  const file = () => readFileSync(`/proc/${cluster.initOf('reach-worker-1')}/root/system/state/config.yaml`, 'utf8')
  const resource = async () => succeeded(await on(worker, 'get', 'mc', 'v1alpha1', '-o', 'jsonpath={.spec}')).stdout.trimEnd()
  /** The node answers new connections, and its configuration is this one: in force, in its file, and as shown. */
  const endsWith = async (text: string) => {
    await eventually(async () => expect(await shown()).toBe(text), 120)
    expect([file(), await resource()]).toEqual([text, text.trimEnd()])
  }

  test('is tried as the first was: the node goes back to the configuration before both', async () => {
    const client = fieldClient()
    const before = await shown()
    await client.version()
    expect(await client.apply(tooNarrow(before))).toContain('reverted in 60s unless the node is reached')
    // New connections are refused by now, the kept one is not.
    expect(await client.apply(labelled(tooNarrow(before), 'kept'))).toContain('reverted in 60s unless the node is reached')
    expect(file()).toContain('second: "kept"')
    await client.close()
    await endsWith(before)
    expect(await newest()).toContain('reverted: the machine was not reached after it')
  }, 180_000)

  test('that takes the change back ends the trial, and stays', async () => {
    const client = fieldClient()
    const before = await shown()
    await client.version()
    expect(await client.apply(tooNarrow(before))).toContain('reverted in 60s unless the node is reached')
    expect(await client.apply(labelled(before, 'stays'))).not.toContain('reverted')
    await client.close()
    // Longer than the trial that it ended.
    await Bun.sleep(65_000)
    await endsWith(labelled(before, 'stays'))
    expect(await newest()).toContain('in force')
  }, 180_000)
})
