// Command control-plane is a whole Kubernetes control plane in one binary, for kordon's end-to-end tests.
//
// The first argument (or the name the binary was called by) picks the component; the rest are that
// component's own flags. No prebuilt Kubernetes binary is needed: everything comes as Go modules.
//
// With CONTROL_PLANE_LEASH set, the component ends when its standard input does: a test that is killed
// leaves nothing running.
package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

// commands maps a component's name to what makes its command. etcd has no cobra command of its own.
var commands = map[string]func() *cobra.Command{
	"kube-apiserver":          func() *cobra.Command { return apiserver.NewAPIServerCommand() },
	"kube-controller-manager": func() *cobra.Command { return controllermanager.NewControllerManagerCommand() },
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kubectl":                 func() *cobra.Command { return kubectl.NewDefaultKubectlCommand() },
}

func main() {
	component := filepath.Base(os.Args[0])
	if _, known := commands[component]; !known && component != "etcd" {
		if len(os.Args) < 2 {
			fail("no component named")
		}
		os.Args = os.Args[1:]
		component = os.Args[0]
	}
	if os.Getenv("CONTROL_PLANE_LEASH") != "" {
		go endWithStandardInput()
	}
	if component == "etcd" {
		etcdmain.Main(os.Args)
		return
	}
	command, known := commands[component]
	if !known {
		fail(fmt.Sprintf("unknown component %q", component))
	}
	os.Exit(cli.Run(command()))
}

// endWithStandardInput exits when whoever holds the other end of standard input has closed it or is gone.
func endWithStandardInput() {
	_, _ = io.Copy(io.Discard, os.Stdin) // an unreadable input is no leash to hang on either
	os.Exit(0)
}

func fail(why string) {
	fmt.Fprintf(os.Stderr, "%s; want etcd, kube-apiserver, kube-controller-manager, kube-scheduler or kubectl\n", why)
	os.Exit(2)
}
