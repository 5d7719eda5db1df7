/** The field's bootstrap provider of Cluster API, built from its Go module, and what it needs of an API server. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { newCA } from '../../../src/pki/certificate.ts'
import { succeeded } from '../../cluster/cluster.ts'
import { builtTool, run } from '../../etcd/etcd-tools.ts'
import { freePort } from '../../support/free-port.ts'

const provider = 'github.com/siderolabs/cluster-api-bootstrap-provider-talos'
const definitions = {
  'sigs.k8s.io/cluster-api': ['cluster.x-k8s.io_clusters', 'cluster.x-k8s.io_machines'],
  [provider]: ['bootstrap.cluster.x-k8s.io_talosconfigs'],
}

/** The provider's manager, outside of the cluster that it serves. */
export class BootstrapProvider {
  #program = ''
  #process: Bun.Subprocess | undefined

  /** `folder` is for its files, and the caller's to remove. */
  constructor(readonly folder: string) {}

  async build(): Promise<void> {
    this.#program = await builtTool(this.folder, 'bootstrap-provider', 'tests/interop/cluster-api', provider)
  }

  /** The files of the custom resources, as the modules have them. */
  async definitions(): Promise<string[]> {
    const files = Object.entries(definitions).map(async ([module, names]) => {
      const list = await run(['go', 'list', '-m', '-f', '{{.Dir}}', module], { cwd: import.meta.dir })
      return names.map((name) => join(succeeded(list).stdout.trim(), 'config/crd/bases', `${name}.yaml`))
    })
    return (await Promise.all(files)).flat()
  }

  /** Starts the manager. Its webhooks are served, but not registered, so nothing calls them. */
  async start(kubeconfig: string): Promise<void> {
    const certificates = join(this.folder, 'webhook')
    mkdirSync(certificates)
    const { crt, key } = newCA({ subject: { commonName: 'webhook' }, kind: 'ecdsa' })
    writeFileSync(join(certificates, 'tls.crt'), crt)
    writeFileSync(join(certificates, 'tls.key'), key, { mode: 0o600 })
    const flags = [
      ...['--kubeconfig', kubeconfig],
      ...['--webhook-cert-dir', certificates, '--webhook-port', String(await freePort())],
      ...['--health-addr', '0', '--diagnostics-address', '0', '--insecure-diagnostics'],
      '--feature-gates=MachinePool=false',
    ]
    this.#process = Bun.spawn([this.#program, ...flags], { stdin: 'ignore', stdout: 'inherit', stderr: 'inherit' })
  }

  async stop(): Promise<void> {
    this.#process?.kill()
    await this.#process?.exited
  }
}
