/** The cluster of docs/manifests/node-pod.yaml: a second cluster, whose nodes are pods of a first one. */
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseAllDocuments } from 'yaml'
import { parseReference } from '../../../src/oci/reference.ts'
import { nodeImage } from '../../../src/release.ts'
import type { CommandResult } from '../../support/command-result.ts'
import { freePort } from '../../support/free-port.ts'
import { serveImage } from '../../support/served-image.ts'
import { eventually, type KubeItem, succeeded, TestCluster } from '../cluster.ts'

const repository = join(import.meta.dir, '../../..')

/** The namespace of the manifest. */
export const namespace = 'ichor'

/** Networks of pods and services that are not those of the outer cluster. */
export const inner = { pods: '10.144.0.0/16', services: '10.112.0.0/16' }

/** A part of an object of Kubernetes, to be changed. */
export type Manifest = { kind: string; metadata: { name: string }; spec: { volumes: { name: string }[] } }

export const manifests = (): Manifest[] =>
  parseAllDocuments(readFileSync(join(repository, 'docs/manifests/node-pod.yaml'), 'utf8')).map((document) => document.toJS())

/** The outer cluster, the forwarded ports of the inner one, and its clients. */
export class PodCluster {
  readonly outer: TestCluster
  readonly folder: string
  #registry: AsyncDisposable | undefined
  #forward: { child: Bun.Subprocess; machine: number; kubernetes: number } | undefined

  constructor(
    name: string,
    private readonly network: string,
  ) {
    this.outer = new TestCluster(name)
    this.folder = join(this.outer.home, 'inner')
  }

  /** Creates the outer cluster with a registry that has the image, and the configurations of the inner one. */
  async create(): Promise<void> {
    const { outer } = this
    const reference = `${nodeImage.repository}:${nodeImage.tag}`
    const port = await freePort()
    const folder = join(outer.home, 'registry')
    mkdirSync(folder)
    this.#registry = await serveImage(join(repository, 'dist', nodeImage.file), { reference, folder, hostname: '0.0.0.0', port })
    await outer.create(
      ...['--cidr', `${this.network}.0/24`, '--memory-workers', '6GiB'],
      ...['--registry-mirror', `${parseReference(reference).domain}=http://${this.network}.1:${port}`],
    )
    await this.#configure()
  }

  /** As on the page: configurations with networks of their own, each in a Secret. */
  async #configure(): Promise<void> {
    const endpoint = `controlplane.${namespace}.svc.cluster.local`
    const networks = JSON.stringify({ cluster: { network: { podSubnets: [inner.pods], serviceSubnets: [inner.services] } } })
    succeeded(
      await this.outer.talosctl(
        ...['gen', 'config', 'inner', `https://${endpoint}:6443`, '--output', this.folder],
        ...['--additional-sans', `127.0.0.1,${endpoint}`, '--with-cluster-discovery=false', '--config-patch', networks],
      ),
    )
    await this.apply(manifests().filter(({ kind }) => kind !== 'Pod'))
    for (const role of ['controlplane', 'worker']) {
      const userdata = readFileSync(join(this.folder, `${role}.yaml`)).toString('base64')
      const create = ['-n', namespace, 'create', 'secret', 'generic', role, '--from-file=userdata=/dev/stdin']
      succeeded(await this.outer.kubectl(create, userdata))
    }
  }

  /** Applies objects to the outer cluster, which refuses fields that it does not know. */
  async apply(objects: readonly object[]): Promise<void> {
    const list = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects })
    succeeded(await this.outer.kubectl(['apply', '--validate=strict', '-f', '-'], list))
  }

  /** Waits until a pod of the outer cluster is ready. */
  async ready(pod: string, seconds = 240): Promise<void> {
    const waited = await this.outer.kubectl(['-n', namespace, 'wait', `pod/${pod}`, '--for=condition=Ready', `--timeout=${seconds}s`])
    if (waited.code !== 0) await this.printPod(pod)
    succeeded(waited)
  }

  /** Prints what is known of a pod, for the reader of a failure. */
  async printPod(pod: string): Promise<void> {
    for (const args of [
      ['describe', 'pod', pod],
      ['logs', pod, '--tail=80'],
      ['logs', pod, '--tail=40', '--previous'],
    ]) {
      const { stdout, stderr } = await this.outer.kubectl(['-n', namespace, ...args])
      console.log(`kubectl ${args.join(' ')}\n${stderr}${stdout}`)
    }
  }

  /** The address of a pod. */
  async addressOf(pod: string): Promise<string> {
    const path = 'jsonpath={.status.podIP}'
    return succeeded(await this.outer.kubectl(['-n', namespace, 'get', 'pod', pod, '-o', path])).stdout
  }

  /** Forwards both ports of the control plane to this host by `kubectl port-forward`, instead of an earlier forward. */
  async forward(): Promise<void> {
    this.stopForwarding()
    const [machine, kubernetes] = [await freePort(), await freePort()]
    const child = Bun.spawn(
      [
        ...[join(repository, 'dist/kubectl'), '-n', namespace, 'port-forward', 'service/controlplane'],
        ...[`${machine}:50000`, `${kubernetes}:6443`],
      ],
      { env: { ...process.env, ...this.outer.env }, stdin: 'ignore', stdout: 'ignore', stderr: 'ignore' },
    )
    this.#forward = { child, machine, kubernetes }
  }

  /** The forwarded ports. kubectl ends when the pod refuses a connection, as before its API server runs, and is started again. */
  async #forwarded() {
    if (this.#forward?.child.exitCode !== null) await this.forward()
    return this.#forward
  }

  stopForwarding(): void {
    this.#forward?.child.kill()
    this.#forward = undefined
  }

  /** talosctl through the control plane; a node is named by the address of its pod. */
  async talosctl(...args: string[]): Promise<CommandResult> {
    const config = ['--talosconfig', join(this.folder, 'talosconfig'), '-e', `127.0.0.1:${(await this.#forwarded())?.machine}`]
    return this.outer.talosctl(...config, ...args)
  }

  /** kubectl of the inner cluster. */
  async kubectl(args: readonly string[], input?: string): Promise<CommandResult> {
    const server = `https://127.0.0.1:${(await this.#forwarded())?.kubernetes}`
    const config = ['--kubeconfig', join(this.folder, 'kubeconfig'), '--server', server]
    return this.outer.kubectl([...config, '--request-timeout=30s', ...args], input)
  }

  async objects(...args: string[]): Promise<KubeItem[]> {
    return JSON.parse(succeeded(await this.kubectl(['get', ...args, '-o', 'json'])).stdout).items
  }

  /** Waits until these nodes of the inner cluster are ready, and no other is. */
  async nodesReady(names: readonly string[], seconds = 240): Promise<void> {
    await eventually(async () => {
      const nodes = await this.objects('nodes')
      const ready = nodes.filter(({ status }) => status.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True'))
      const found = ready.map(({ metadata }) => metadata.name).sort()
      if (found.join() !== names.join()) throw new Error(`ready are ${found.join(', ') || 'no nodes'}, not ${names.join(', ')}`)
    }, seconds)
  }

  /** Writes the administrator's kubeconfig of the inner cluster. */
  async fetchKubeconfig(): Promise<void> {
    const path = join(this.folder, 'kubeconfig')
    const node = await this.addressOf('controlplane-1')
    succeeded(await this.talosctl('-n', node, 'kubeconfig', path, '--force', '--no-merge'))
  }

  async close(): Promise<void> {
    this.stopForwarding()
    await this.outer.destroy()
    await this.#registry?.[Symbol.asyncDispose]()
    this.outer.close()
  }
}
