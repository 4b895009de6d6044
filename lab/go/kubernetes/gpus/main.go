// GPUs that are only names: a device plugin that tells a kubelet of as many as it is asked to, and tells a container
// which of them it was given, as NVIDIA's does.
package main

import (
	"context"
	"log"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const (
	resource = "nvidia.com/gpu"
	told     = "NVIDIA_VISIBLE_DEVICES"
	socket   = "lab-gpus.sock"
)

type plugin struct {
	api.UnimplementedDevicePluginServer
	count int
}

func (p *plugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{}, nil
}

func (p *plugin) ListAndWatch(_ *api.Empty, stream api.DevicePlugin_ListAndWatchServer) error {
	var devices []*api.Device
	for number := 0; number < p.count; number++ {
		devices = append(devices, &api.Device{ID: strconv.Itoa(number), Health: api.Healthy})
	}
	if err := stream.Send(&api.ListAndWatchResponse{Devices: devices}); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

func (p *plugin) Allocate(_ context.Context, asked *api.AllocateRequest) (*api.AllocateResponse, error) {
	answer := &api.AllocateResponse{}
	for _, container := range asked.ContainerRequests {
		given := map[string]string{told: strings.Join(container.DevicesIds, ",")}
		answer.ContainerResponses = append(answer.ContainerResponses, &api.ContainerAllocateResponse{Envs: given})
	}
	return answer, nil
}

func main() {
	folder := os.Args[1]
	count, err := strconv.Atoi(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	path := filepath.Join(folder, socket)
	_ = os.Remove(path)
	listener, err := net.Listen("unix", path)
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer()
	api.RegisterDevicePluginServer(server, &plugin{count: count})
	go func() { log.Fatal(server.Serve(listener)) }()
	if err := register(folder); err != nil {
		log.Fatal(err)
	}
	select {}
}

func register(folder string) error {
	kubelet, err := grpc.NewClient("unix://"+filepath.Join(folder, "kubelet.sock"),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer kubelet.Close()
	_, err = api.NewRegistrationClient(kubelet).Register(context.Background(),
		&api.RegisterRequest{Version: api.Version, Endpoint: socket, ResourceName: resource})
	return err
}
