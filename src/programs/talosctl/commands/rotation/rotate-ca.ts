import { Command, Option } from 'commander'
import type { Cluster } from '../../cluster.ts'
import { list } from '../../flags.ts'
import type { Io } from '../../io.ts'
import { type CommentFlags, checkCommentFlags, commentOptions } from '../../machine-config/comment-flags.ts'
import { type RotateOptions, rotateAuthorities } from '../../rotation/rotate-ca.ts'
import { restartScopes } from '../../rotation/workloads.ts'

/** talosctl rotate-ca */
export const rotateCA = (io: Io, cluster: Cluster) => {
  const command = new Command()
    .description('Replace the certificate authorities of the machine API and of Kubernetes, while the cluster runs.')
    .option('--talos', 'replace the authority of the machine API', true)
    .option('--no-talos', 'leave the authority of the machine API')
    .option('--kubernetes', 'replace the authority of Kubernetes', true)
    .option('--no-kubernetes', 'leave the authority of Kubernetes')
    .option('--dry-run', 'only show what would be done', true)
    .option('--no-dry-run', 'do it')
    .option('-o, --output <file>', 'where the new client configuration goes; the file in use gets its context replaced', 'talosconfig')
    .option('--kubeconfig <file>', 'get a new kubeconfig and merge it into this file')
    .addOption(
      new Option('--restart-workloads <which>', 'restart what reads the authorities of Kubernetes once: what the system runs, all, or none')
        .choices(restartScopes)
        .default('system'),
    )
    .option('--k8s-endpoint <url>', 'reach Kubernetes here instead of at the endpoint of the cluster')
  return machineOptions(commentOptions(command)).action((options: RotateOptions & CommentFlags) => {
    checkCommentFlags(options)
    return rotateAuthorities(io, cluster, options)
  })
}

/** Declares the flags that name all machines of a cluster. */
export function machineOptions(command: Command): Command {
  return command
    .option('--init-node <node>', 'one more control plane, changed first')
    .option('--control-plane-nodes <node>', 'addresses of the control planes (default: what the cluster knows)', list())
    .option('--worker-nodes <node>', 'addresses of the workers (default: what the cluster knows)', list())
}
