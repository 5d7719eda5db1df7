import { expect, test } from 'bun:test'
import { core, type KubeClient } from '../../src/kube/client.ts'
import { KubeError } from '../../src/kube/errors.ts'
import { follow } from '../../src/kube/follow.ts'
import type { KubeObject } from '../../src/kube/object.ts'
import type { WatchEvent } from '../../src/kube/watch-events.ts'

const node = (name: string): KubeObject => ({ apiVersion: 'v1', kind: 'Node', metadata: { name } })

/** Follows an API server that answers each list with the next of `lists`, and each watch with the next of `watches`. */
async function followed(lists: (KubeObject[] | Error)[], watches: (WatchEvent[] | Error)[]) {
  const seen: string[] = []
  const end = new AbortController()
  const versions: string[] = []
  const client = {
    async list() {
      const next = lists.shift()
      if (!next) end.abort(new Error('enough'))
      if (next instanceof Error) throw next
      return { items: next ?? [], resourceVersion: String(lists.length) }
    },
    async *watch(_: unknown, { resourceVersion }: { resourceVersion: string }) {
      versions.push(resourceVersion)
      const next = watches.shift()
      if (next instanceof Error) throw next
      yield* next ?? []
    },
  } as unknown as KubeClient
  const handlers = {
    listed: (objects: readonly KubeObject[]) => seen.push(`list ${objects.map(({ metadata }) => metadata.name).join(' ')}`),
    changed: ({ metadata }: KubeObject, deleted: boolean) => seen.push(`${deleted ? 'deleted' : 'changed'} ${metadata.name}`),
    failed: ({ status }: KubeError) => seen.push(`failed ${status}`),
  }
  await follow(client, core.node, {}, handlers, end.signal, { first: 1, longest: 2 })
  return { seen, versions }
}

test('a list is followed by its changes, without bookmarks, from the version of the list', async () => {
  const watch: WatchEvent[] = [
    { type: 'ADDED', object: node('b') },
    { type: 'BOOKMARK', object: node('') },
    { type: 'MODIFIED', object: node('a') },
    { type: 'DELETED', object: node('b') },
  ]
  const { seen, versions } = await followed([[node('a')]], [watch])
  expect(seen).toEqual(['list a', 'changed b', 'changed a', 'deleted b', 'list '])
  expect(versions[0]).toBe('0')
})

test('a failed list and a failed watch are reported, and everything is listed again', async () => {
  const unreachable = new KubeError(0, 'Unreachable', 'down')
  const expired = new KubeError(410, 'Expired', 'too old')
  const { seen } = await followed([unreachable, [node('a')], [node('b')]], [expired])
  expect(seen).toEqual(['failed 0', 'list a', 'failed 410', 'list b', 'list '])
})

test('an error that the API server did not cause ends it', async () => {
  await expect(followed([new TypeError('a mistake')], [])).rejects.toThrow('a mistake')
})
