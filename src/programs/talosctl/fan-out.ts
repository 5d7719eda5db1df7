/** One call for each of many nodes, for methods that apid sends to one node only. */
import { RpcError } from '../../rpc/status.ts'
import { within } from '../../timing/within.ts'
import { formatDuration } from '../../wire/duration.ts'
import { NodeErrors } from './failure.ts'

/** How many nodes are called at the same time. */
export const concurrency = 32

/** What a fan-out needs besides its nodes. */
export interface FanOutOptions {
  /** Milliseconds that one node may take, from its own start on. */
  readonly timeout: number
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal
  /** How many nodes are called at the same time. */
  readonly concurrency?: number
}

/** The calls of one node; `signal` is aborted when its time is over. */
export type NodeCalls<T> = (node: string, signal: AbortSignal) => AsyncIterable<T>

/** Yields what the nodes give, in the order in which it arrives; throws the failures when every node has ended. */
export async function* fanOut<T>(nodes: readonly string[], act: NodeCalls<T>, options: FanOutOptions): AsyncGenerator<T, void> {
  const arrived: T[] = []
  const failed = new Map<string, Error>()
  const leaving = new AbortController()
  const signal = AbortSignal.any([options.signal, leaving.signal])
  let wake = () => {}
  const push = (item: T) => {
    arrived.push(item)
    wake()
  }
  const queue = nodes.values()
  const worker = async () => {
    for (const node of queue) {
      if (signal.aborted) return
      await callNode(node, act, { ...options, signal }, push).catch((error: Error) => failed.set(node, error))
    }
  }
  let ended = false
  const workers = Array.from({ length: Math.min(options.concurrency ?? concurrency, nodes.length) }, worker)
  const all = Promise.all(workers).finally(() => {
    ended = true
    wake()
  })
  try {
    while (!ended || arrived.length > 0) {
      const { promise, resolve } = Promise.withResolvers<void>()
      wake = resolve
      if (arrived.length === 0 && !ended) await promise
      yield* arrived.splice(0)
    }
    await all
  } finally {
    leaving.abort()
  }
  options.signal.throwIfAborted()
  const errors = nodes.flatMap((node) => {
    const error = failed.get(node)
    return error ? [{ node, error }] : []
  })
  if (errors.length > 0) throw new NodeErrors(errors, nodes.length)
}

/** What a node gave. */
export interface Marked<T> {
  readonly node: string
  readonly item: T
}

/** What the nodes gave that did not fail, and the failures of the others. */
export interface Collected<T> {
  readonly items: readonly T[]
  readonly failure?: NodeErrors
}

/** Sorts what a fan-out yields by the order of the nodes. Throws when all of several nodes failed, or the only one. */
export async function inOrder<T>(nodes: readonly string[], given: AsyncIterable<Marked<T>>): Promise<Collected<T>> {
  const rank = new Map(nodes.map((node, index) => [node, index]))
  const found: Marked<T>[] = []
  const sorted = () => found.toSorted((a, b) => (rank.get(a.node) ?? 0) - (rank.get(b.node) ?? 0)).map(({ item }) => item)
  try {
    for await (const one of given) found.push(one)
  } catch (error) {
    if (!(error instanceof NodeErrors) || nodes.length <= 1 || error.errors.length === nodes.length) throw error
    return { items: sorted(), failure: error }
  }
  return { items: sorted() }
}

/** Ends with the node's calls, or rejects with DeadlineExceeded even when they ignore their signal. */
async function callNode<T>(node: string, act: NodeCalls<T>, { timeout, signal }: FanOutOptions, push: (item: T) => void): Promise<void> {
  const over = new AbortController()
  const own = AbortSignal.any([signal, over.signal])
  const calls = async () => {
    for await (const item of act(node, own)) {
      if (own.aborted) return
      push(item)
    }
  }
  try {
    await within(calls(), timeout, () => new RpcError('DeadlineExceeded', `no answer within ${formatDuration(timeout * 1e6)}`))
  } finally {
    over.abort()
  }
}

/** The answer of the first node that gives one: the next node is called when one failed or was silent for `stagger` ms. */
export async function firstAnswer<T>(
  nodes: readonly string[],
  call: (node: string, signal: AbortSignal) => Promise<T>,
  { timeout, signal, stagger = 1000 }: FanOutOptions & { readonly stagger?: number },
): Promise<T> {
  const leaving = new AbortController()
  const own = AbortSignal.any([signal, leaving.signal])
  const errors: { node: string; error: Error }[] = []
  const attempts: Promise<{ value: T } | undefined>[] = []
  const silent = () => new RpcError('DeadlineExceeded', 'no answer')
  try {
    for (const node of nodes) {
      const attempt = within(call(node, own), timeout, silent).then(
        (value) => ({ value }),
        (error: Error) => {
          errors.push({ node, error })
          return undefined
        },
      )
      attempts.push(attempt)
      // Earlier nodes that are still silent may answer meanwhile.
      const found = await Promise.race([...attempts.map(answered), attempt, within(never, stagger, silent).catch(() => undefined)])
      if (found) return found.value
    }
    for (const attempt of attempts) {
      const found = await Promise.race([...attempts.map(answered), attempt])
      if (found) return found.value
    }
  } finally {
    leaving.abort()
  }
  signal.throwIfAborted()
  throw new NodeErrors(errors, nodes.length)
}

const never = new Promise<never>(() => {})

/** The answer of an attempt; of one that failed, a promise that stays pending. */
const answered = async <T>(attempt: Promise<T | undefined>): Promise<T> => (await attempt) ?? never
