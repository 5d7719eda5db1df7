/** Requests of init to the outside: real TLS servers, a real proxy, authorities that nobody else trusts. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { silent } from '../../src/cosi/log.ts'
import { Store } from '../../src/cosi/store.ts'
import { Outbound } from '../../src/os/outbound.ts'
import { newCA, newCertificate } from '../../src/pki/certificate.ts'
import { tlsKey } from '../../src/pki/key.ts'
import { discoveryMethods } from '../../src/programs/discovery/methods.ts'
import { Registry } from '../../src/programs/discovery/registry.ts'
import { connect } from '../../src/rpc/client/channel.ts'
import { publicAuthorities } from '../../src/rpc/client/public-authorities.ts'
import { type Server, serveTls } from '../../src/rpc/server/server.ts'
import { connectProxy } from './connect-proxy.ts'

const ca = newCA({ kind: 'ecdsa', lifetime: 3600_000, subject: { commonName: 'company' } })
let web: Bun.Server<undefined>
let grpc: Server
let proxy: Awaited<ReturnType<typeof connectProxy>>
beforeAll(async () => {
  const sans = { dns: ['web.test', 'discovery.test'], ips: ['127.0.0.1'] }
  const own = newCertificate({ ca, subject: { commonName: 'server' }, sans, usage: ['serverAuth'], lifetime: 3600_000 })
  const tls = { cert: own.crt, key: tlsKey(own.key) }
  web = Bun.serve({ port: 0, hostname: '127.0.0.1', tls, fetch: () => new Response('from the server') })
  const methods = discoveryMethods(new Registry())
  grpc = await serveTls({ host: '127.0.0.1', port: 0 }, tls, { methods, store: new Store(), log: silent, roles: () => new Set<never>() })
  proxy = await connectProxy({ 'web.test:443': web.port ?? 0, 'discovery.test:443': grpc.port })
})
afterAll(async () => {
  await web.stop(true)
  await grpc.close()
  proxy.close()
})

const outbound = (variables: string[], addedRoots = ca.crt) =>
  new Outbound({ publicRoots: publicAuthorities, addedRoots: () => addedRoots, variables: () => variables })

const hello = { clusterId: 'one', clientVersion: 'test' }

test('an authority of the configuration is trusted, and no other', async () => {
  const url = `https://127.0.0.1:${web.port}/`
  expect(await (await outbound([]).fetch(url)).text()).toBe('from the server')
  await expect(outbound([], '').fetch(url)).rejects.toMatchObject({ code: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE' })
  // One server's own authority is trusted besides the others.
  expect(await (await outbound([], '').fetch(url, { tls: { ca: ca.crt } })).text()).toBe('from the server')
})

test('a download goes through the proxy, unless the host is excepted', async () => {
  const variables = [`https_proxy=${proxy.url}`, 'NO_PROXY=127.0.0.0/8']
  expect(await (await outbound(variables).fetch('https://web.test/')).text()).toBe('from the server')
  expect(proxy.requests.splice(0)).toEqual(['CONNECT web.test:443 HTTP/1.1'])
  expect(await (await outbound(variables).fetch(`https://127.0.0.1:${web.port}/`)).text()).toBe('from the server')
  expect(proxy.requests).toEqual([])
})

test('gRPC goes through the proxy, with TLS to the server behind it', async () => {
  const channel = connect(outbound([`HTTPS_PROXY=${proxy.url.replace('http://', 'http://user:word@')}`]).target('discovery.test'))
  const { clientIp } = await channel.unary('sidero.discovery.server.Cluster/Hello', hello)
  channel.close()
  expect(Buffer.from(clientIp).length).toBeGreaterThan(0)
  expect(proxy.requests.splice(0)).toEqual(['CONNECT discovery.test:443 HTTP/1.1 with credentials'])
})

test('gRPC trusts no other server behind the proxy', async () => {
  const channel = connect(outbound([`HTTPS_PROXY=${proxy.url}`], '').target('discovery.test'))
  await expect(channel.unary('sidero.discovery.server.Cluster/Hello', hello)).rejects.toThrow('certificate is not trusted')
  channel.close()
  proxy.requests.splice(0)
})

test('a proxy that refuses is named', async () => {
  const channel = connect(outbound([`HTTPS_PROXY=${proxy.url}`]).target('elsewhere.test'))
  await expect(channel.unary('sidero.discovery.server.Cluster/Hello', hello)).rejects.toThrow(
    'proxy "127.0.0.1": CONNECT elsewhere.test:443 was refused: HTTP/1.1 403 Forbidden',
  )
  channel.close()
})

test('proxies of other kinds are refused with what can be used', async () => {
  await expect(outbound(['HTTPS_PROXY=socks5://127.0.0.1:1']).fetch('https://web.test/')).rejects.toThrow(
    'proxy has scheme "socks5": use http or https',
  )
  const channel = connect(outbound(['HTTPS_PROXY=https://127.0.0.1:1']).target('discovery.test'))
  await expect(channel.unary('sidero.discovery.server.Cluster/Hello', hello)).rejects.toThrow('which gRPC does not support: use http')
  channel.close()
})
