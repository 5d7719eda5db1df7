/**
 * A configuration that cuts a node off goes back by itself: applied by our client, which comes back to see, and by one that
 * knows nothing of it. One that leaves the node within reach stays.
 */

import { afterAll, beforeAll, expect, test } from 'bun:test'
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
afterAll(async () => {
  await cluster.destroy()
  cluster.close()
}, 60_000)

const on = (node: string, ...args: string[]) => cluster.talosctl(args[0] ?? '', '-n', node, ...args.slice(1))

const block = 'apiVersion: v1alpha1\nkind: NetworkDefaultActionConfig\ningress: block\n'
const admit = (subnet: string, name = 'api') =>
  `apiVersion: v1alpha1\nkind: NetworkRuleConfig\nname: ${name}\nportSelector: {ports: [50000], protocol: tcp}\ningress: [{subnet: ${subnet}}]\n`

const newest = async () =>
  succeeded(await on(worker, 'config-history'))
    .stdout.split('\n')[1]
    ?.trim() ?? ''

test('a firewall that shuts our client out is reverted, and the client says so', async () => {
  const { code, stderr } = await on(worker, 'patch', 'mc', '-p', block)
  expect(stderr).toContain('reverted in 60s unless the node is reached')
  expect([code, stderr]).toEqual([
    1,
    expect.stringMatching(/it goes back to the configuration before by itself|configuration \d+ was reverted/),
  ])
  await eventually(async () => expect(await newest()).toContain('reverted: the machine was not reached after it'), 60)
  expect(succeeded(await on(worker, 'explain')).stdout).toMatch(/is not in force: it was reverted/)
}, 180_000)

test('an address that nobody can reach is reverted, and the client says so', async () => {
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

test('a client that knows nothing of it does not lose the node either', async () => {
  // The field's method, called as the field's client does.
  const { contexts, context } = JSON.parse(JSON.stringify(Bun.YAML.parse(readFileSync(join(cluster.home, 'config'), 'utf8')))) as {
    context: string
    contexts: Record<string, { ca: string; crt: string; key: string; endpoints: string[] }>
  }
  const { ca, crt, key, endpoints } = contexts[context]!
  const pem = (text: string) => Buffer.from(text, 'base64').toString()
  const tls = { ca: pem(ca), cert: pem(crt), key: pem(key) }
  const channel = connect({ address: endpoints[0]!, tls, defaultPort: 50_000 })
  const file = join(cluster.home, 'narrow.yaml')
  const now = succeeded(await on(worker, 'config-history', 'show', '0')).stdout
  writeFileSync(file, now.replace('subnet: 10.0.0.0/8', 'subnet: 192.0.2.0/24'))
  const { messages } = await channel.unary(
    'machine.MachineService/ApplyConfiguration',
    { data: readFileSync(file), mode: machine.ApplyConfigurationRequest.Mode.AUTO },
    { metadata: { nodes: [worker] }, deadline: 30_000 },
  )
  await channel.close()
  expect(messages[0]?.modeDetails).toContain('reverted in 60s unless the node is reached')
  await eventually(async () => expect(await newest()).toContain('reverted: the machine was not reached after it'), 120)
  expect(succeeded(await on(worker, 'config-history', 'show', '0')).stdout).toBe(now)
}, 180_000)
