import type { Area } from '../area.ts'
import { ensureImage } from '../cri/ensure-image.ts'
import { kubeconfig } from './api/kubeconfig.ts'
import { configKubernetesAccess } from './controllers/access-config.ts'
import { configAddressFilter } from './controllers/address-filter.ts'
import { configAdmissionControl } from './controllers/admission-control-config.ts'
import { configApiServer } from './controllers/api-server-config.ts'
import { configAuditPolicy } from './controllers/audit-policy-config.ts'
import { configAuthorization } from './controllers/authorization-config.ts'
import { configBootstrapManifests } from './controllers/bootstrap-manifests-config.ts'
import { tryComponentSettings } from './controllers/component-trial.ts'
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
import { observeEndpoints } from './controllers/kubernetes-endpoint.ts'
import { applyAllManifests } from './controllers/manifest-apply.ts'
import { renderManifests } from './controllers/manifests.ts'
import { applyNode } from './controllers/node-apply.ts'
import { chooseNodeIP } from './controllers/node-ip.ts'
import { configNodeIP } from './controllers/node-ip-config.ts'
import { configNodeAnnotations, configNodeCordon, configNodeLabels, configNodeTaints } from './controllers/node-specs.ts'
import { observeNode } from './controllers/node-status.ts'
import { configNodename } from './controllers/nodename.ts'
import { configurePodNetwork } from './controllers/pod-network.ts'
import { renderConfigs } from './controllers/render-configs.ts'
import { renderSecrets } from './controllers/render-secrets.ts'
import { configScheduler } from './controllers/scheduler-config.ts'
import { approveServingCertificates } from './controllers/serving-certificates.ts'
import { configStaticEndpoint } from './controllers/static-endpoint.ts'
import { serveStaticPods } from './controllers/static-pod-server.ts'
import { observeStaticPods } from './controllers/static-pod-status.ts'
import { resources } from './nouns.ts'
import { kubeletService } from './services/kubelet.ts'

/** Kubernetes on this node: kubelet, control plane, what a new cluster is given, and the way to its API. */
export const k8s: Area = {
  name: 'k8s',
  resources,
  services: (machine) => [kubeletService(machine)],
  methods: () => [kubeconfig],
  controllers: (machine) => [
    tryComponentSettings(machine),
    configAddressFilter,
    configKubernetesAccess,
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
    specKubelet({ mode: machine.kernel.mode, oomFloor: machine.oomFloor }),
    startKubelet(machine, (image, signal) => ensureImage(machine.kernel, image, { store: machine.store, signal, note: () => {} })),
    observeKubeletKubeconfig(machine.kernel),
    observeNode(machine.kernel),
    observeStaticPods(),
    configurePodNetwork(machine),
    configNodeLabels,
    configNodeAnnotations,
    configNodeTaints,
    configNodeCordon,
    applyNode(machine.kernel),
    approveServingCertificates(),
    configStaticEndpoint,
    observeEndpoints(machine.kernel),
    findKubePrismEndpoints,
    configKubePrism,
    runKubePrism(machine.kernel),
    renderManifests,
    loadExtraManifests,
    applyAllManifests(machine),
  ],
}
