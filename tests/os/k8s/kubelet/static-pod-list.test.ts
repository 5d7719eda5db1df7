import { expect, test } from 'bun:test'
import { StaticPodList } from '../../../../src/os/k8s/kubelet/static-pod-list.ts'

const never = new AbortController().signal
const items = (text: string) => (JSON.parse(text) as { items: unknown[] }).items

test('a reader that has not seen the list gets it at once, also when it is empty', async () => {
  const list = new StaticPodList()
  expect(items(await list.read('a', never))).toEqual([])
  list.set([{ name: 'one' }])
  expect(items(await list.read('a', never))).toEqual([{ name: 'one' }])
  expect(items(await list.read('b', never))).toEqual([{ name: 'one' }])
})

test('a reader that has seen it is answered when it changes', async () => {
  const list = new StaticPodList()
  await list.read('a', never)
  let answered = false
  const waiting = list.read('a', never).then((text) => {
    answered = true
    return text
  })
  list.set([])
  await Promise.resolve()
  expect(answered).toBeFalse()
  list.set([{ name: 'one' }])
  expect(items(await waiting)).toEqual([{ name: 'one' }])
})

test('a timeout and a closed connection end the waiting', async () => {
  const list = new StaticPodList([{ name: 'one' }], { timeout: 1 })
  await list.read('a', never)
  expect(items(await list.read('a', never))).toHaveLength(1)
  const unchanged = new StaticPodList([])
  await unchanged.read('a', never)
  const gone = new AbortController()
  const waiting = unchanged.read('a', gone.signal)
  gone.abort()
  expect(items(await waiting)).toEqual([])
})
