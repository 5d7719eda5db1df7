import type { Area } from '../area.ts'
import { configAddressFilter } from './controllers/address-filter.ts'
import { configAdmissionControl } from './controllers/admission-control-config.ts'
import { configApiServer } from './controllers/api-server-config.ts'
import { configAuditPolicy } from './controllers/audit-policy-config.ts'
import { configAuthorization } from './controllers/authorization-config.ts'
import { configBootstrapManifests } from './controllers/bootstrap-manifests-config.ts'
import { configStaticPods } from './controllers/configured-static-pods.ts'
import { renderControlPlanePods } from './controllers/control-plane-pods.ts'
import { configControllerManager } from './controllers/controller-manager-config.ts'
import { loadExtraManifests } from './controllers/extra-manifests.ts'
import { configExtraManifests } from './controllers/extra-manifests-config.ts'
import { runKubePrism } from './controllers/kube-prism.ts'
import { configKubePrism } from './controllers/kube-prism-config.ts'
import { findKubePrismEndpoints } from './controllers/kube-prism-endpoints.ts'
import { configKubelet } from './controllers/kubelet-config.ts'
import { observeKubeletKubeconfig } from './controllers/kubelet-kubeconfig.ts'
import { startKubelet } from './controllers/kubelet-service.ts'
import { specKubelet } from './controllers/kubelet-spec.ts'
import { applyAllManifests } from './controllers/manifest-apply.ts'
import { renderManifests } from './controllers/manifests.ts'
import { chooseNodeIP } from './controllers/node-ip.ts'
import { configNodeIP } from './controllers/node-ip-config.ts'
import { observeNode } from './controllers/node-status.ts'
import { configNodename } from './controllers/nodename.ts'
import { configurePodNetwork } from './controllers/pod-network.ts'
import { renderConfigs } from './controllers/render-configs.ts'
import { renderSecrets } from './controllers/render-secrets.ts'
import { configScheduler } from './controllers/scheduler-config.ts'
import { serveStaticPods } from './controllers/static-pod-server.ts'
import { resources } from './nouns.ts'
import { kubeletService } from './services/kubelet.ts'

/** Kubernetes on this node: kubelet, control plane, what a new cluster is given, and the way to its API. */
export const k8s: Area = {
  name: 'k8s',
  resources,
  services: (machine) => [kubeletService(machine)],
  controllers: (machine) => [
    configAddressFilter,
    configApiServer,
    configControllerManager,
    configScheduler,
    configAdmissionControl,
    configAuditPolicy,
    configAuthorization,
    configBootstrapManifests,
    configExtraManifests,
    configStaticPods,
    renderSecrets(machine.kernel),
    renderConfigs(machine.kernel),
    renderControlPlanePods(),
    serveStaticPods(),
    configNodename,
    configNodeIP,
    chooseNodeIP,
    configKubelet,
    specKubelet(machine.kernel),
    startKubelet(machine),
    observeKubeletKubeconfig(machine.kernel),
    observeNode(machine.kernel),
    configurePodNetwork(machine.kernel),
    findKubePrismEndpoints,
    configKubePrism,
    runKubePrism(),
    renderManifests,
    loadExtraManifests,
    applyAllManifests(machine),
  ],
}
