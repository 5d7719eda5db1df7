import * as v from 'valibot'
import { core, type KubeClient } from '../../../kube/client.ts'
import { isNotFound, KubeError } from '../../../kube/errors.ts'
import { pause } from '../../../timing/pause.ts'
import type { Io } from '../io.ts'
import type { Pass } from './modes.ts'
import { accountObjects, namespace, outputContainer, podName, type SuiteImages, suiteContainer, suitePod } from './objects.ts'

/** An image with a shell and base64. */
export const defaultShell = 'registry.k8s.io/e2e-test-images/busybox:1.36.1-1'
/** How long the pod may take to start, with the pull of its images. */
const startTimeout = 15 * 60_000
/** How long its results may take to be readable after its end, and objects to be gone. */
const endTimeout = 2 * 60_000
const interval = 1000
/** The longest run of the suite there is takes two hours; a connection that follows a log is renewed meanwhile. */
const runTimeout = 12 * 3600_000
const followTimeout = 3600_000
/** Upper limit of an archive of results, in base64. */
const archiveLimit = 256 * 1024 * 1024

const containerState = v.object({
  waiting: v.optional(v.object({ reason: v.optional(v.string()), message: v.optional(v.string()) })),
  running: v.optional(v.object({})),
  terminated: v.optional(v.object({ exitCode: v.number() })),
})
const podShape = v.object({
  status: v.object({
    phase: v.optional(v.string()),
    containerStatuses: v.optional(v.array(v.object({ name: v.string(), state: v.optional(containerState, {}) })), []),
  }),
})
type ContainerState = v.InferOutput<typeof containerState>

/** The images of the suite of a version. */
export function suiteImages(version: string): SuiteImages {
  return { suite: `registry.k8s.io/conformance:${version}`, shell: defaultShell }
}

/** The release that a cluster runs, as in `v1.36.3`. */
export async function clusterVersion(client: KubeClient, signal: AbortSignal): Promise<string> {
  const { gitVersion } = await client.request<{ gitVersion: string }>('GET', '/version', { signal })
  return /^v\d+\.\d+\.\d+/.exec(gitVersion)?.[0] ?? gitVersion
}

/** What a pass left behind. */
export interface PassResult {
  /** Exit code of the suite. */
  readonly exitCode: number
  /** Gzipped tar with e2e.log and junit_01.xml. */
  readonly archive: Uint8Array
}

/** A wait of the suite came to its deadline. */
export class ConformanceTimeout extends Error {
  override name = 'ConformanceTimeout'
}

/** Runs the suite inside a cluster; its objects are removed before and after. */
export class SuiteRun {
  constructor(
    private readonly io: Io,
    private readonly client: KubeClient,
    private readonly images: SuiteImages,
  ) {}

  /** Runs one pass; the log of the suite goes to standard output. */
  async pass(pass: Pass): Promise<PassResult> {
    await this.remove()
    for (const object of [...accountObjects(), suitePod(this.images, pass)]) {
      const kind = await this.client.kind(object.apiVersion, object.kind, this.#call())
      await this.client.create(kind, object, this.#call())
    }
    try {
      await this.#started()
      const exitCode = await this.#follow()
      return { exitCode, archive: await this.#archive() }
    } finally {
      await this.remove()
    }
  }

  /** Removes what a run creates, and waits until it is gone. */
  async remove(): Promise<void> {
    // Ctrl-C ends the run, but not the removal of what it made.
    const options = { timeout: 30_000 }
    for (const { apiVersion, kind, metadata } of accountObjects().toReversed())
      await this.client.delete(await this.client.kind(apiVersion, kind, options), metadata.name, metadata.namespace, options).catch(absent)
    const end = this.io.now().getTime() + endTimeout
    for (;;) {
      const there = await this.client.get(core.namespace, namespace, undefined, options).catch(absent)
      if (!there) return
      if (this.io.now().getTime() > end)
        throw new ConformanceTimeout(`namespace "${namespace}" is still being deleted after 2 minutes: see what holds it, then try again`)
      await pause(interval)
    }
  }

  #call() {
    return { signal: this.io.signal }
  }

  async #state(container: string): Promise<ContainerState> {
    const pod = v.parse(podShape, await this.client.get(core.pod, podName, namespace, this.#call()))
    return pod.status.containerStatuses.find(({ name }) => name === container)?.state ?? {}
  }

  async #started(): Promise<void> {
    const end = this.io.now().getTime() + startTimeout
    let shown = ''
    for (;;) {
      const { waiting, running, terminated } = await this.#state(suiteContainer)
      if (running || terminated) return
      const now = waiting?.message ?? waiting?.reason ?? 'the pod is being scheduled'
      if (now !== shown) this.io.stderr.write(`waiting for the suite to start: ${now}\n`)
      shown = now
      if (this.io.now().getTime() > end) throw new ConformanceTimeout(`the suite did not start within 15 minutes: ${now}`)
      await this.#pause()
    }
  }

  /** Shows the log until the suite ends, over as many connections as it takes. */
  async #follow(): Promise<number> {
    const end = this.io.now().getTime() + runTimeout
    let lost: Date | undefined
    while (this.io.now().getTime() < end) {
      const sinceSeconds = lost && Math.max(1, Math.ceil((this.io.now().getTime() - lost.getTime()) / 1000))
      try {
        const selection = { container: suiteContainer, follow: true, ...(sinceSeconds !== undefined && { sinceSeconds }) }
        for await (const bytes of this.client.log(podName, namespace, selection, { ...this.#call(), timeout: followTimeout }))
          this.io.stdout.write(bytes)
      } catch (error) {
        if (!(error instanceof KubeError) || this.io.signal.aborted) throw error
        this.io.stderr.write(`the log broke off and is continued: ${error.message}\n`)
      }
      lost = this.io.now()
      const { terminated } = await this.#state(suiteContainer)
      if (terminated) return terminated.exitCode
      await this.#pause()
    }
    throw new ConformanceTimeout('the suite did not end within 12 hours')
  }

  async #archive(): Promise<Uint8Array> {
    const end = this.io.now().getTime() + endTimeout
    while (!(await this.#state(outputContainer)).terminated) {
      if (this.io.now().getTime() > end)
        throw new ConformanceTimeout(`container "${outputContainer}" did not hand the results out within 2 minutes`)
      await this.#pause()
    }
    const parts: Uint8Array[] = []
    let length = 0
    for await (const bytes of this.client.log(
      podName,
      namespace,
      { container: outputContainer },
      { ...this.#call(), timeout: endTimeout },
    )) {
      length += bytes.length
      if (length > archiveLimit) throw new Error(`the results are larger than ${archiveLimit >> 20} MiB`)
      parts.push(bytes)
    }
    return Buffer.from(Buffer.concat(parts).toString('latin1'), 'base64')
  }

  async #pause(): Promise<void> {
    await this.io.pause(interval)
    this.io.signal.throwIfAborted()
  }
}

function absent(error: unknown): undefined {
  if (!isNotFound(error)) throw error
}
