import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeClock } from '../../../src/cosi/clock.ts'
import { createLogger, type LogEntry, silent } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import { Identity } from '../../../src/os/cluster/resources/identity.ts'
import { MachineConfig } from '../../../src/os/config/resources/machine-config.ts'
import { SystemInformation } from '../../../src/os/hardware/resources/system-information.ts'
import type { Kernel } from '../../../src/os/kernel.ts'
import { AddressSpec } from '../../../src/os/network/resources/address.ts'
import { LinkSpec, LinkStatus } from '../../../src/os/network/resources/link.ts'
import { NetworkStatus } from '../../../src/os/network/resources/network-status.ts'
import { Diagnostic } from '../../../src/os/runtime/resources/diagnostic.ts'
import { UniqueMachineToken } from '../../../src/os/runtime/resources/unique-machine-token.ts'
import { GrpcTunnel } from '../../../src/os/siderolink/grpc-tunnel.ts'
import { SiderolinkConfig, SiderolinkStatus, SiderolinkTunnel } from '../../../src/os/siderolink/resources/siderolink.ts'
import { siderolink } from '../../../src/os/siderolink/siderolink.ts'
import { bidi, type Method, unary } from '../../../src/rpc/server/method.ts'
import { type Server, serveUnix } from '../../../src/rpc/server/server.ts'
import { RpcError } from '../../../src/rpc/status.ts'
import { newPrivateKey } from '../../../src/wire/wireguard/keys.ts'
import { linkStatus } from '../network/link-status.ts'

const folder = mkdtempSync(join(tmpdir(), 'ichor-siderolink-'))
const servers: Server[] = []
afterAll(async () => {
  for (const server of servers) await server.close()
  rmSync(folder, { recursive: true })
})

const serverKey = newPrivateKey()
const place = {
  serverEndpoint: ['192.0.2.1:51821'],
  serverPublicKey: serverKey,
  nodeAddressPrefix: 'fdae:41e4:649b:9303::2/64',
  serverAddress: 'fdae:41e4:649b:9303::1',
}
const tunnelAddress = '[fdae:41e4:649b:9304::2]:50888'

async function serve(...methods: Method[]): Promise<string> {
  const path = join(folder, `${servers.length}.sock`)
  servers.push(await serveUnix({ path }, { methods, store: new Store(), log: silent }))
  return path
}

/** A management server; `requests` are what it was sent. */
async function managementServer({ refuses = '' } = {}) {
  const requests: Record<string, unknown>[] = []
  const path = await serve(
    unary('sidero.link.ProvisionService/Provision', 'anyone', (request) => {
      requests.push({ ...request })
      if (refuses) throw new RpcError('PermissionDenied', refuses)
      return { ...place, ...(request.wireguardOverGrpc && { grpcPeerAddrPort: tunnelAddress }) }
    }),
  )
  return { path, requests }
}

function machine(path: string, { mode = 'metal' as Kernel['mode'], commandLine = '', hasWireguard = true } = {}) {
  const store = new Store()
  const entries: LogEntry[] = []
  let now = 1_800_000_000_000
  const os = new Runtime(store, {
    log: createLogger((entry) => entries.push(entry)),
    clock: makeClock({ now: () => new Date(now), elapsed: () => now }),
  })
  const peers: { lastHandshake: number }[] = []
  const kernel = {
    mode,
    files: { readText: () => commandLine },
    net: { openNetwork: () => ({ link: () => ({ kind: 'wireguard', index: 7 }), [Symbol.dispose]() {} }) },
    wireguard: { hasWireguard: () => hasWireguard, canRunInUserSpace: () => false, wireguardDevice: () => ({ peers }) },
  } as unknown as Kernel
  const dialled: string[] = []
  const outbound = {
    target: (address: string, { plain = false } = {}) => {
      dialled.push(`${plain ? 'grpc' : 'https'}://${address}`)
      return { unix: path }
    },
  }
  os.register(...siderolink.parts!({ kernel, outbound, version: { tag: 'v1.13.9' } } as never).controllers!)
  os.start()
  store.put(NetworkStatus, 'status', { addressReady: true, connectivityReady: false, hostnameReady: false, etcFilesReady: false })
  return { store, os, entries, peers, dialled, pass: (seconds: number) => (now += seconds * 1000), now: () => now }
}

const document = (url: string) => `apiVersion: v1alpha1\nkind: SideroLinkConfig\napiUrl: ${url}\n`
const url = 'https://omni.example?jointoken=secret'
const uuid = '01020304-0506-0708-090a-0b0c0d0e0f10'

test('a machine joins with its UUID and tokens, and gets a link and an address', async () => {
  const { path, requests } = await managementServer()
  const { store, os, dialled } = machine(path)
  store.put(MachineConfig, 'v1alpha1', document(url))
  await os.settled()
  expect(store.get(SiderolinkConfig, 'siderolink')?.spec).toEqual({
    apiEndpoint: url,
    host: 'omni.example:443',
    joinToken: 'secret',
    insecure: false,
    tunnel: false,
  })
  expect(requests).toEqual([]) // it does not know itself yet
  store.put(SystemInformation, 'systeminformation', { uuid })
  store.put(UniqueMachineToken, 'unique-machine-token', { token: 'mine' })
  await os.settled()
  expect(dialled).toEqual(['https://omni.example:443'])
  expect(requests).toMatchObject([{ nodeUuid: uuid, joinToken: 'secret', nodeUniqueToken: 'mine', talosVersion: 'v1.13.9' }])
  const link = store.get(LinkSpec, 'operator/siderolink', { namespace: 'network-config' })?.spec
  expect(link).toMatchObject({ name: 'siderolink', kind: 'wireguard', mtu: 1280, layer: 'operator' })
  expect(link?.wireguard?.peers).toEqual([
    {
      publicKey: serverKey,
      presharedKey: '',
      endpoint: '192.0.2.1:51821',
      persistentKeepaliveInterval: '25s',
      allowedIPs: ['fdae:41e4:649b:9303::1/128'],
    },
  ])
  expect(store.list(AddressSpec, { namespace: 'network-config' }).map(({ spec }) => [spec.linkName, spec.address])).toEqual([
    ['siderolink', place.nodeAddressPrefix],
  ])
  expect(store.list(SiderolinkTunnel)).toEqual([])
  // Another token is another application; without a server nothing is left.
  store.put(UniqueMachineToken, 'unique-machine-token', { token: 'new' })
  await os.settled()
  expect(requests[1]).toMatchObject({ nodeUniqueToken: 'new', nodePublicKey: requests[0]?.nodePublicKey })
  store.destroy(MachineConfig, 'v1alpha1')
  await os.settled()
  expect([
    ...store.list(LinkSpec, { namespace: 'network-config' }),
    ...store.list(AddressSpec, { namespace: 'network-config' }),
    ...store.list(SiderolinkConfig),
  ]).toEqual([])
  await os.stop()
})

test('the status follows the handshakes', async () => {
  const { path } = await managementServer()
  const { store, os, peers, pass, now } = machine(path)
  store.put(MachineConfig, 'v1alpha1', document(url))
  store.put(SystemInformation, 'systeminformation', { uuid })
  store.put(UniqueMachineToken, 'unique-machine-token', { token: '' })
  await os.settled()
  const status = () => store.get(SiderolinkStatus, 'siderolink-status')?.spec
  expect(status()).toEqual({ host: 'omni.example', connected: false, linkName: 'siderolink', grpcTunnel: false })
  peers.push({ lastHandshake: now() / 1000 })
  store.put(LinkStatus, 'siderolink', linkStatus(7))
  await os.settled()
  expect(status()?.connected).toBe(true)
  pass(276)
  store.put(LinkStatus, 'siderolink', linkStatus(7, { mtu: 1280 }))
  await os.settled()
  expect(status()?.connected).toBe(false)
  await os.stop()
})

test('a tunnel has a link of its own name', async () => {
  const { path, requests } = await managementServer()
  const { store, os } = machine(path)
  store.put(MachineConfig, 'v1alpha1', document(`${url}&grpc_tunnel=true`))
  store.put(SystemInformation, 'systeminformation', { uuid })
  store.put(UniqueMachineToken, 'unique-machine-token', { token: '' })
  await os.settled()
  expect(requests).toMatchObject([{ wireguardOverGrpc: true }])
  expect(store.get(SiderolinkTunnel, 'siderolink-tunnel')?.spec).toEqual({
    apiEndpoint: `${url}&grpc_tunnel=true`,
    linkName: 'siderolinktun',
    mtu: 1280,
    nodeAddress: tunnelAddress,
  })
  const [peer] = store.get(LinkSpec, 'operator/siderolinktun', { namespace: 'network-config' })?.spec.wireguard?.peers ?? []
  expect(peer?.endpoint).toMatch(/^127\.0\.0\.1:\d+$/)
  store.destroy(MachineConfig, 'v1alpha1')
  await os.settled()
  await os.stop()
})

test('a container joins under its identity; the kernel parameter is not its own', async () => {
  const { path, requests } = await managementServer()
  const { store, os } = machine(path, { mode: 'container', commandLine: 'siderolink.api=grpc://a:1' })
  store.put(UniqueMachineToken, 'unique-machine-token', { token: '' })
  store.put(Identity, 'local', { nodeId: 'us' })
  await os.settled()
  expect(requests).toEqual([])
  store.put(MachineConfig, 'v1alpha1', document(url))
  await os.settled()
  expect(requests[0]?.nodeUuid).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
  await os.stop()
})

test('the kernel parameter leads to a server, and a malformed one is reported', async () => {
  const { path } = await managementServer()
  const good = machine(path, { commandLine: 'quiet siderolink.api=10.0.0.1:4000?jointoken=a' })
  await good.os.settled()
  expect(good.store.get(SiderolinkConfig, 'siderolink')?.spec).toMatchObject({ host: '10.0.0.1:4000', joinToken: 'a', insecure: true })
  const bad = machine(path, { commandLine: 'siderolink.api=grpc://a' })
  await bad.os.settled()
  expect(bad.store.get(Diagnostic, 'siderolink-api')?.spec.message).toContain('grpc:// needs a port')
  await good.os.stop()
  await bad.os.stop()
})

test('a refusal is logged with its reason, and tried again', async () => {
  const { path, requests } = await managementServer({ refuses: 'invalid join token' })
  const { store, os, entries } = machine(path)
  store.put(MachineConfig, 'v1alpha1', document(url))
  store.put(SystemInformation, 'systeminformation', { uuid })
  store.put(UniqueMachineToken, 'unique-machine-token', { token: '' })
  await os.settled()
  expect(requests.length).toBeGreaterThan(0)
  const logged = JSON.stringify(entries.map((entry) => [entry.message, String((entry as { fields?: object }).fields)]))
  expect(logged).not.toContain('secret')
  expect(store.list(LinkSpec, { namespace: 'network-config' })).toEqual([])
  await os.stop()
})

test('datagrams go both ways through a stream, and a refused stream is opened again', async () => {
  const seen: string[] = []
  let streams = 0
  const second = Promise.withResolvers<void>()
  const path = await serve(
    bidi('sidero.link.WireGuardOverGRPCService/CreateStream', 'anyone', async function* (packets, { metadata }) {
      streams++
      seen.push(String(metadata['x-siderolink-ipv6-addr']))
      if (streams === 2) second.resolve()
      if (streams === 1) throw new RpcError('PermissionDenied', 'not yet')
      for await (const { data } of packets) yield { data: Buffer.from(`answer to ${Buffer.from(data)}`) }
    }),
  )
  const tunnel = new GrpcTunnel({ refused: 1, lost: 1 })
  const [host = '', port = ''] = (await tunnel.endpoint()).split(':')
  const stop = new AbortController()
  const problems: unknown[] = []
  const running = tunnel.run(
    { target: () => ({ unix: path }), nodeAddress: tunnelAddress },
    silent,
    (error) => problems.push(error),
    stop.signal,
  )
  const { promise, resolve } = Promise.withResolvers<string>()
  const link = await Bun.udpSocket({
    connect: { hostname: host, port: Number(port) },
    socket: { data: (_, bytes) => resolve(bytes.toString()) },
  })
  await second.promise
  link.send('handshake')
  expect(await promise).toBe('answer to handshake')
  expect(seen).toEqual([tunnelAddress, tunnelAddress])
  expect(problems.map((problem) => (problem as RpcError | undefined)?.status)).toEqual(['PermissionDenied', undefined])
  stop.abort()
  await running
  link.close()
  tunnel.close()
})
