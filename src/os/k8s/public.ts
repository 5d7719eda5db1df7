/** What other areas may use of this one besides its resources and documents. */

// Arguments of etcd follow the rules of the other components.
export { ArgumentError, buildArguments, denied, overwrite } from './arguments.ts'
// etcd waits for its image as the other components do.
export { type AwaitedImage, awaitedImage, type PullImage, pullError, pullRepeatedly } from './component/awaited-image.ts'
// Explanations name the containers that keep a pod from being ready.
export { type ContainerProblem, type ContainerRun, podRun } from './component/pod-run.ts'
// etcd has settings on trial like the other components.
export { annotated, inEffect, settingsAnnotation } from './component/settings.ts'
// The number of failures that end a trial is also that of etcd and of explanations.
export { failureLimit } from './component/trial.ts'
// The default image of etcd is in the same table.
export { defaultImages } from './images.ts'
// Explanations read the kubelet's certificate.
export { kubeletClientCertificate } from './kubelet/files.ts'
// Sequences wait as long as the kubelet may need to end its pods.
export { shutdownTime } from './kubelet/shutdown-time.ts'
// etcd and KubeSpan read the Kubernetes sections of the configuration.
export { extraArgsOf, isControlPlane, kubernetesConfigOf } from './machine-config.ts'
// Discovery through Kubernetes uses the access of the node.
export { nodeAccess } from './node/access.ts'
// Sequences cordon and drain the node before its services stop.
export { cordonAndDrain, isRegistered } from './node/drain.ts'
// etcd writes its certificates like the control plane; certificates are shown as PEM.
export { type FileWriter, pemOf, renderFiles } from './rendered-files.ts'
