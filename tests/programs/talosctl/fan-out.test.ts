import { afterAll, beforeAll, expect, test } from 'bun:test'
import { silent } from '../../../src/cosi/log.ts'
import { Store } from '../../../src/cosi/store.ts'
import { Cluster } from '../../../src/programs/talosctl/cluster.ts'
import { NodeErrors } from '../../../src/programs/talosctl/failure.ts'
import { concurrency, fanOut, firstAnswer } from '../../../src/programs/talosctl/fan-out.ts'
import { serverStream } from '../../../src/rpc/server/method.ts'
import type { Server } from '../../../src/rpc/server/server.ts'
import { servePlain } from '../../../src/rpc/server/server.ts'
import { RpcError } from '../../../src/rpc/status.ts'
import { pause } from '../../../src/timing/pause.ts'
import { talosctl } from './peer.ts'
import { textIo } from './text-io.ts'

const nodes = Array.from({ length: 200 }, (_, index) => `n${index + 1}`)
const dead = ['n1', 'n17', 'n200']
const slow = new Set(nodes.filter((_, index) => index % 20 === 5))
const mute = ['n3', 'n40', 'n41']
const { signal } = new AbortController()

/** Two hundred nodes behind one endpoint: some are gone, some take their time, and some never answer. */
function images({ withMute }: { withMute: boolean }) {
  const load = { now: 0, most: 0 }
  const method = serverStream('machine.ImageService/List', 'anyone', async function* (_, { metadata }) {
    const [node = ''] = metadata.node ?? []
    load.most = Math.max(load.most, ++load.now)
    try {
      if (withMute && mute.includes(node)) await pause(20_000)
      await pause(slow.has(node) ? 100 : 1)
      if (dead.includes(node)) throw new RpcError('Unavailable', 'connect: no route to host')
      yield { name: `image-of-${node}`, digest: 'sha256:0', size: 1000 }
    } finally {
      load.now--
    }
  })
  return { method, load }
}

test('two hundred nodes are listed in their order, and the failed ones are counted and named at the end', async () => {
  const { method, load } = images({ withMute: false })
  const { code, stdout, stderr } = await talosctl([method], ['-n', nodes.join(','), 'image', 'list'])
  expect(code).toBe(1)
  expect([...(stdout.match(/^n\d+/gm) ?? [])]).toEqual(nodes.filter((node) => !dead.includes(node)))
  expect(stderr).toBe(`3 errors occurred:
${dead.map((node) => `\t* ${node}: rpc error: code = Unavailable desc = connect: no route to host\n`).join('')}\
197 of 200 nodes answered; failed: n1, n17, n200
`)
  expect([load.most > 1, load.most <= concurrency]).toEqual([true, true])
})

test('the exit code is 0 when all answer, and nothing is on stderr', async () => {
  const { method } = images({ withMute: false })
  const named = nodes.filter((node) => !dead.includes(node))
  const { code, stdout, stderr } = await talosctl([method], ['-n', named.join(','), 'image', 'list', '-o', 'json'])
  expect([code, stderr]).toEqual([0, ''])
  expect(JSON.parse(stdout).map(({ node }: { node: string }) => node)).toEqual(named)
})

let server: Server
let cluster: Cluster
beforeAll(async () => {
  server = await servePlain(
    { host: '127.0.0.1', port: 0 },
    { methods: [images({ withMute: true }).method], store: new Store(), log: silent },
  )
  cluster = new Cluster(textIo(), { endpoints: [`127.0.0.1:${server.port}`], nodes, source: 'test' })
})
afterAll(async () => {
  await cluster.close()
  await server.close(0)
})

test('nodes that never answer end with their own deadline and delay no other', async () => {
  const arrived: string[] = []
  const began = performance.now()
  let last = 0
  const listing = cluster.each(async function* (node, name, own) {
    for await (const _ of cluster.stream('machine.ImageService/List', { containerd: {} }, { node, signal: own })) yield name
  }, 3000)
  const failure = await (async () => {
    for await (const node of listing) {
      arrived.push(node)
      last = performance.now() - began
    }
  })().catch((error: unknown) => error)
  const late = mute.map((node) => ({ node, status: 'DeadlineExceeded' as const, message: 'no answer within 3s' }))
  expect(arrived.toSorted()).toEqual(nodes.filter((node) => !dead.includes(node) && !mute.includes(node)).toSorted())
  expect(last).toBeLessThan(3000)
  expect(failure).toBeInstanceOf(NodeErrors)
  const { errors, message } = failure as NodeErrors
  const shown = errors.map(({ node, error }) => ({ node, status: (error as RpcError).status, message: error.message }))
  expect(shown.filter(({ node }) => mute.includes(node))).toEqual(late)
  expect(message).toEndWith('\n194 of 200 nodes answered; failed: n1, n3, n17, n40, n41, n200\n')
})

test('calls that ignore their signal cannot hold the others back', async () => {
  const given = fanOut(
    ['deaf', 'a', 'b'],
    async function* (node) {
      if (node === 'deaf') await new Promise(() => {})
      yield node
    },
    { timeout: 50, signal, concurrency: 1 },
  )
  const arrived: string[] = []
  await expect(
    (async () => {
      for await (const node of given) arrived.push(node)
    })(),
  ).rejects.toThrow('2 of 3 nodes answered; failed: deaf')
  expect(arrived).toEqual(['a', 'b'])
})

test('the calls end when nobody reads them any more, and when the command is interrupted', async () => {
  const ended: string[] = []
  const forever = async function* (node: string, own: AbortSignal) {
    yield node
    await pause(20_000, own)
    ended.push(node)
  }
  for await (const _ of fanOut(['a', 'b'], forever, { timeout: 20_000, signal })) break
  await Bun.sleep(5)
  expect(ended.toSorted()).toEqual(['a', 'b'])
  const interrupt = new AbortController()
  const given = fanOut(['a'], forever, { timeout: 20_000, signal: interrupt.signal })
  await given.next()
  interrupt.abort(new Error('interrupted'))
  await expect(given.next()).rejects.toThrow('interrupted')
})

test('the first answer is that of the first node that gives one', async () => {
  const options = { timeout: 1000, signal, stagger: 10 }
  const answers: Record<string, () => Promise<string>> = {
    mute: () => new Promise(() => {}),
    dead: () => Promise.reject(new RpcError('Unavailable', 'gone')),
    late: () => pause(30).then(() => 'late'),
    here: async () => 'here',
  }
  const first = (...names: string[]) => firstAnswer(names, (name) => answers[name]!(), options)
  expect(await first('here', 'dead')).toBe('here')
  expect(await first('mute', 'dead', 'here')).toBe('here')
  expect(await first('dead', 'mute', 'late')).toBe('late')
  await expect(first('dead', 'dead')).rejects.toThrow('0 of 2 nodes answered; failed: dead, dead')
})
