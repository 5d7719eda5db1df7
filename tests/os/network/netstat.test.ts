import { afterAll, describe, expect, test } from 'bun:test'
import { createServer } from 'node:net'
import { silent } from '../../../src/cosi/log.ts'
import { Store } from '../../../src/cosi/store.ts'
import * as files from '../../../src/linux/fs/files.ts'
import { netstat } from '../../../src/os/network/api/netstat.ts'
import type { NetworkOf } from '../../../src/os/network/sockets.ts'
import type { machine } from '../../../src/rpc/messages.ts'

const everything = { tcp: true, tcp6: true, udp: true, udp6: true, udplite: true, udplite6: true, raw: true, raw6: true }
const context = { store: new Store(), log: silent, signal: new AbortController().signal }

async function ask(request: object, pods: NetworkOf[] = [], proc: Partial<typeof files> = {}): Promise<machine.ConnectRecord[]> {
  const method = netstat({ files: { ...files, ...proc } }, async () => pods)
  const reply = (await method.handle({ filter: 0, ...request } as never, context as never)) as machine.NetstatResponse
  return reply.messages[0]!.connectrecord
}

describe('on this machine', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  afterAll(() => server.close())
  const port = (server.address() as { port: number }).port
  const here = (records: machine.ConnectRecord[]) => records.filter(({ localport }) => localport === port)

  test('a listening socket is listed with its process', async () => {
    const [record] = here(await ask({ filter: 2, feature: { pid: true } }))
    expect(record).toMatchObject({ l4proto: 'tcp', localip: '127.0.0.1', remoteip: '0.0.0.0', remoteport: 0, state: 10, netns: '' })
    expect(record?.process?.pid).toBe(process.pid)
    expect(record?.process?.name).not.toBe('')
  })

  test('a listening socket is not a connected one, and its process is empty, not absent, unless requested', async () => {
    expect(here(await ask({ filter: 1 }))).toEqual([])
    expect(here(await ask({}))[0]?.process).toEqual({ pid: 0, name: '' })
  })

  test('only the requested protocols are read', async () => {
    expect(here(await ask({ l4proto: { ...everything, tcp: false } }))).toEqual([])
    expect(here(await ask({ l4proto: everything }))).toHaveLength(1)
    expect(await ask({ l4proto: Object.fromEntries(Object.keys(everything).map((name) => [name, false])) })).toEqual([])
  })
})

const heading = '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n'
const proc: Record<string, string> = {
  '/proc/self/net/tcp': `${heading}   0: 0100007F:1D15 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 10 1 0000000000000000 100 0 0 10 0\n`,
  '/proc/70/net/tcp6': `${heading}   0: 0000000000000000FFFF00000200580A:C350 0000000000000000FFFF00000100580A:9C40 01 00000001:00000002 02:00000064 00000003  1000        4 20 2 0000000000000000 20 4 30 10 -1\n`,
}
const recorded = { readTextIfThere: (path: string) => proc[path] }
const pod = { name: 'cni-1', pid: 70 }

describe('pods', () => {
  const request = (netns: Partial<machine.NetstatRequest.NetNS>) => ({
    netns: { hostnetwork: false, netns: [], allnetns: false, ...netns },
  })
  const places = (records: machine.ConnectRecord[]) => records.map(({ netns, localport }) => `${netns}:${localport}`)

  test('are read only on request, by name or all of them', async () => {
    expect(places(await ask({}, [pod], recorded))).toEqual([':7445'])
    expect(places(await ask(request({ hostnetwork: true }), [pod], recorded))).toEqual([':7445'])
    expect(places(await ask(request({ netns: ['cni-1'] }), [pod], recorded))).toEqual(['cni-1:50000'])
    expect(places(await ask(request({ allnetns: true }), [pod], recorded))).toEqual([':7445', 'cni-1:50000'])
  })

  test('an unknown namespace is an error', async () => {
    await expect(ask(request({ netns: ['cni-2'] }), [pod], recorded)).rejects.toMatchObject({ status: 'NotFound' })
  })

  test("a socket has all the kernel's fields, with an unmapped IPv4 peer", async () => {
    const [record] = await ask(request({ netns: ['cni-1'] }), [pod], recorded)
    expect(record).toMatchObject({
      l4proto: 'tcp6',
      localip: '10.88.0.2',
      localport: 50000,
      remoteip: '10.88.0.1',
      remoteport: 40000,
      state: 1,
      txqueue: 1,
      rxqueue: 2,
      tr: 2,
      timerwhen: 100,
      retrnsmt: 3,
      uid: 1000,
      timeout: 4,
      inode: 20,
      ref: 2,
      pointer: 0,
    })
  })
})
