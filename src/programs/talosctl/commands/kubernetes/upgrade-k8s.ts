import { Command, Option } from 'commander'
import { defaultKubernetesVersion } from '../../../../os/config/generate/versions.ts'
import type { Cluster } from '../../cluster.ts'
import { duration } from '../../flags.ts'
import type { Io } from '../../io.ts'
import { inventoryPolicies } from '../../kubernetes-upgrade/manifests/policy.ts'
import { rollbackKubernetes } from '../../kubernetes-upgrade/rollback.ts'
import { type UpgradeOptions, upgradeKubernetes } from '../../kubernetes-upgrade/upgrade.ts'
import { type CommentFlags, checkCommentFlags, commentOptions } from '../../machine-config/comment-flags.ts'

const minutes = 60_000

/** talosctl upgrade-k8s */
export const upgradeK8s = (io: Io, cluster: Cluster) => {
  const command = new Command()
    .description('Upgrade the Kubernetes of the cluster, component by component and node by node.')
    .option('--to <version>', 'the version afterwards', defaultKubernetesVersion)
    .option('--from <version>', 'the version now (default: the lowest one in the cluster)')
    .option('--rollback', 'go back to the images from before the last upgrade', false)
    .option('--dry-run', 'only show what would change', false)
    .option('--endpoint <host>', 'reach Kubernetes here instead of at the server of its kubeconfig')
    .option('--pre-pull-images', 'pull all images before anything is changed', true)
    .option('--no-pre-pull-images', 'pull each image when it is needed')
    .option('--upgrade-kubelet', 'upgrade the kubelets too', true)
    .option('--no-upgrade-kubelet', 'leave the kubelets')
    .option('--drain', 'move the pods away from a node before its kubelet is changed', false)
    .option('--drain-timeout <duration>', 'how long the pods of a node may take to leave', duration, 5 * minutes)
    .option('--step-timeout <duration>', 'how long one component of one node may take to be healthy', duration, 5 * minutes)
    .option('--manifests-force', 'replace objects that cannot be changed in place', false)
    .addOption(
      new Option('--manifests-inventory-policy <policy>', 'which objects the manifests may take over')
        .choices(inventoryPolicies)
        .default('AdoptIfNoInventory'),
    )
    .option('--manifests-no-prune', 'leave objects that are no longer in the manifests', false)
    .option('--manifests-reconcile-timeout <duration>', 'how long to wait for what was applied; 0s does not wait', duration, 5 * minutes)
  for (const [flag, image] of [
    ['apiserver', 'registry.k8s.io/kube-apiserver'],
    ['controller-manager', 'registry.k8s.io/kube-controller-manager'],
    ['scheduler', 'registry.k8s.io/kube-scheduler'],
    ['proxy', 'registry.k8s.io/kube-proxy'],
    ['kubelet', 'ghcr.io/siderolabs/kubelet'],
  ] as const)
    command.option(`--${flag}-image <image>`, `image of ${flag}, without its tag`, image)
  return commentOptions(command).action(({ manifestsNoPrune, ...options }: Flags) => {
    checkCommentFlags(options)
    const run = options.rollback ? rollbackKubernetes : upgradeKubernetes
    return run(io, cluster, { ...options, manifestsPrune: !manifestsNoPrune })
  })
}

interface Flags extends Omit<UpgradeOptions, 'manifestsPrune'>, CommentFlags {
  readonly manifestsNoPrune: boolean
}
