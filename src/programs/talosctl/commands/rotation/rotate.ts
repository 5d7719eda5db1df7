import { Command } from 'commander'
import type { Cluster } from '../../cluster.ts'
import type { Io } from '../../io.ts'
import { type KeyOptions, rotateSecretboxKey, rotateServiceAccountKey } from '../../rotation/rotate-keys.ts'
import { machineOptions } from './rotate-ca.ts'

/** talosctl rotate */
export const rotate = (io: Io, cluster: Cluster) => {
  const command = new Command().description('Replace keys of Kubernetes, while the cluster runs.')
  for (const [name, description, run] of [
    ['service-account-key', 'Replace the key that signs tokens of service accounts.', rotateServiceAccountKey],
    ['secretbox-key', 'Replace the key that encrypts secrets in etcd, and encrypt all Secrets again.', rotateSecretboxKey],
  ] as const) {
    const one = command
      .command(name)
      .description(description)
      .option('--dry-run', 'only show what would be done', true)
      .option('--no-dry-run', 'do it')
      .option('--k8s-endpoint <url>', 'reach Kubernetes here instead of at the endpoint of the cluster')
    machineOptions(one).action((options: KeyOptions) => run(io, cluster, options))
  }
  return command
}
