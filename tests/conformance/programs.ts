/** The programs of the Kubernetes conformance suite, built from the same release as the control plane inside. */
import { join } from 'node:path'
import { exclusive } from '../../rootfs/build/exclusive.ts'
import { buildFreestanding } from '../../rootfs/build/freestanding.ts'
import { buildGo, type GoRecipe } from '../../rootfs/build/go.ts'
import { kube, kubectl } from '../../rootfs/build/go-recipes.ts'
import { kubernetesReleases } from '../../rootfs/build/kubernetes.ts'

/** The release whose suite it is: the one that is built when no other is requested. */
export const [release] = kubernetesReleases

const suite: GoRecipe = {
  ...kube(release),
  name: 'conformance',
  module: '../tests/conformance',
  programs: {
    agnhost: 'k8s.io/kubernetes/test/images/agnhost',
    ginkgo: 'github.com/onsi/ginkgo/v2/ginkgo',
    'regression-issue-74839': 'k8s.io/kubernetes/test/images/regression-issue-74839',
    'go-runner': 'k8s.io/kubernetes/test/conformance/image/go-runner',
    nnp: 'k8s.io/kubernetes/test/images/nonewprivs',
    'sample-apiserver': 'k8s.io/sample-apiserver',
  },
  tests: { 'e2e.test': 'k8s.io/kubernetes/test/e2e' },
}

/** Where the programs are. */
export interface ConformancePrograms {
  /** Folder with e2e.test, ginkgo and the programs of the test images. */
  readonly folder: string
  /** The multicall binary with etcd, CoreDNS and the components of Kubernetes. */
  readonly kube: string
  readonly kubectl: string
  readonly pause: string
}

/** Builds what is missing: minutes at first, then nothing. */
export async function conformancePrograms(): Promise<ConformancePrograms> {
  return exclusive('parts', async () => ({
    folder: (await buildGo(suite)).folder,
    kube: join((await buildGo(kube(release))).folder, 'kube'),
    kubectl: join((await buildGo(kubectl(release))).folder, 'kubectl'),
    pause: join((await buildFreestanding('pause')).folder, 'pause'),
  }))
}
